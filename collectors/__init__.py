"""The child process of the agent. It reads a job, and reports facts about the machine or network.

A collector sends no requests to the service, gets no secrets, and never touches the agent's state.
"""
