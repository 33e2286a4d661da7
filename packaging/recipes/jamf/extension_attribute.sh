#!/bin/sh
# A Jamf Pro extension attribute (data type String): the version of the agent and the state of its
# service, such as "1.0.0 running".
program=/opt/venue-agent/venue-agent
if [ -x "$program" ]; then
    version=$("$program" --version | cut -d ' ' -f 2)
    if "$program" service status >/dev/null 2>&1; then state=running; else state="not running"; fi
    echo "<result>$version $state</result>"
else
    echo "<result>not installed</result>"
fi
