"""The child process of the agent: it reads a job, examines the machine or its network, and sends
facts.

A collector never talks to the service, never sees a secret and never touches the agent's state.
"""
