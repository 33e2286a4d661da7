"""pending_requests"""
