"""locations"""
