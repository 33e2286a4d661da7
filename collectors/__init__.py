"""What runs in the child process: reads a job, looks at the machine or its network, tells facts.

A collector never talks to the service, never sees a secret and never touches the agent's state.
"""
