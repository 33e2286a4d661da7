"""overview"""
