"""agent_protocol"""
