// The name and the location of a device, and the time of its last report.

// A generated install id is not shown as a name (agent/presentation/machine_name.py).
const GENERATED = /^(install-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const locationOf = (device) => device.locationName || device.locationId;

export const nameOf = (device) =>
  GENERATED.test(device.legacyInstallId) ? locationOf(device) : device.legacyInstallId;

export const reportedAt = ({ reports }) => reports.map((each) => each.createdAt).sort().at(-1);
