"""openapi"""
