"""operation"""
