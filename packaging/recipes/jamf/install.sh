#!/bin/sh
# A Jamf Pro script that runs after the package of a policy (priority "After"). Parameters of the
# policy: 4 is the address of the service, 5 the location id, and 6 the path of a file with the API
# key, which another package of the policy has installed. The script deletes this file.
set -eu

base_url=${4:?parameter 4: the address of the service} location=${5:?parameter 5: the location id}
key=${6:?parameter 6: the file with the API key}
/opt/venue-agent/venue-agent service install \
    --base-url "$base_url" --location "$location" --api-key-file "$key"
rm -f "$key"
