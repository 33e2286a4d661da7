"""The child process of the agent. It reads a job, and reports facts about the machine or network.

A collector sends no requests to the service and never touches the agent's state. The only secret
that it gets is the SNMP community of the printers, if one is configured.
"""
