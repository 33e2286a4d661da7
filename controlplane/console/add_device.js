// The guide to adding a device: it creates a key and a command, and waits until the device enrolls.

import { callConsole } from "./facade.js";
import { byId, element, replace } from "./elements.js";
import { fetchLocations, zoneField } from "./locations.js";
import { copyText, fieldOf } from "./forms.js";
import { membership } from "./signing_in.js";

// The times between two reloads: while the page waits for a device, and otherwise.
const WAIT_MS = 2000;
const SLOW_MS = 60000;
// The value of the option "A new location" in the list of locations.
const NEW = "+";
const LOOPBACK = ["127.0.0.1", "[::1]", "localhost"];
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const installCommand = (program, options) => `sudo ${program} service install ${options} --api-key-file -`;
// `before` describes what to do before the command. `command` takes options of `service install`, and returns the whole
// command. The command contains no secret, because shells store commands in their history. The program prompts for the
// key. A system whose shell is not a POSIX shell has a function `quote`, which quotes a text for its shell.
const SYSTEMS = {
  debian: {
    name: "Debian or Ubuntu",
    before: "Copy the agent's package (venue-agent_…_amd64.deb) to the device. Open a terminal in the folder of the package and run:",
    command: (options) => `sudo apt-get install --yes ./venue-agent_*.deb && ${installCommand("venue-agent", options)}`,
  },
  linux: {
    name: "Another Linux with systemd",
    before: "Copy the agent's wheel (venue_agent-….whl) to the device. Open a terminal in the folder of the wheel and run:",
    command: (options) => "sudo python3 -m venv /opt/venue-agent && sudo /opt/venue-agent/bin/pip install ./venue_agent-*.whl"
      + ` && ${installCommand("/opt/venue-agent/bin/venue-agent", options)}`,
  },
  macos: {
    name: "macOS",
    before: "Copy the agent's package (venue-agent-….pkg) to the device. Open a terminal in the folder of the package and run:",
    command: (options) => `sudo installer -pkg ./venue-agent-*.pkg -target / && ${installCommand("/usr/local/bin/venue-agent", options)}`,
  },
  windows: {
    name: "Windows",
    before: "Unpack the agent's zip file to C:\\Program Files\\venue-agent. Open PowerShell as administrator and run:",
    command: (options) => `& 'C:\\Program Files\\venue-agent\\venue-agent.exe' service install ${options} --api-key-file -`,
    quote: (text) => `'${text.replaceAll("'", "''")}'`,
  },
};
// The key that this page has created, or null. `devices` are the devices that enrolled with the key. `isRevoked` is
// whether the key was revoked, for example because it was not used in time.
let created = null;

export const canAddDevices = () => Boolean(membership()) && membership().role !== "viewer";
export const addDeviceLink = () => canAddDevices() ? element("a", { class: "button", id: "add-a-device", href: "#/add-device" }, "Add a device") : null;
export const reloadMs = () => created && !created.devices.length && !created.isRevoked ? WAIT_MS : SLOW_MS;

export async function fetchAddDevice() {
  const [data, state] = await Promise.all([
    fetchLocations(), created ? callConsole("profile/key-devices", { keyId: created.key.id }) : null,
  ]);
  if (created && state) Object.assign(created, state);
  return data;
}

export function showAddDevice(data, view, hooks) {
  if (!byId("add-device")) {
    created = null;
    build(data, view, hooks);
  }
  replace(byId("arrival"), ...arrival());
}

function build(data, view, hooks) {
  const problem = reasonAgainstAdding();
  const locationOptions = data.locations.map((each) => [each.locationId, each.name ? `${each.name} (${each.locationId})` : each.locationId]);
  if (data.canAdd) locationOptions.push([NEW, "A new location …"]);
  const zone = zoneField();
  const form = element("form", { onsubmit: (event) => create(event, hooks) },
    fieldOf({ name: "location", label: "Location", options: locationOptions }),
    element("div", { id: "new-location", hidden: true },
      fieldOf({ name: "name", label: "Name of the new location", maxlength: 128, autocomplete: "off" }), fieldOf(zone)),
    fieldOf({ name: "system", label: "System of the device", options: Object.entries(SYSTEMS).map(([id, { name }]) => [id, name]) }),
    element("p", { class: "problem", role: "alert", id: "add-problem" }),
    element("button", { class: "primary", id: "create-command" }, "Create the command"));
  const showNewLocation = () => {
    const isNew = byId("form-location").value === NEW;
    byId("new-location").hidden = !isNew;
    byId("form-name").required = isNew;
  };
  form.addEventListener("change", showNewLocation);
  view.replaceChildren(element("div", { class: "sheet", id: "add-device" },
    element("h1", {}, "Add a device"),
    element("p", { class: "lede" }, "The agent runs on a till, a kiosk or a PC. It checks the machine, its printers and its network."),
    problem ? element("p", { class: "problem" }, problem) : element("ol", { class: "steps" },
      element("li", {}, element("h2", {}, "Choose the location and the system"), form),
      element("li", { id: "command-step", hidden: true }, element("h2", {}, "Run the command on the device"), element("div", { id: "command-box" })),
      element("li", { id: "arrival-step", hidden: true }, element("h2", {}, "Wait for the device"), element("div", { id: "arrival", role: "status" })))));
  if (problem) view.firstChild.append(element("div", { id: "arrival", hidden: true }));  // `showAddDevice` requires it
  else showNewLocation();
}

function reasonAgainstAdding() {
  if (!membership()) return "An API key cannot create keys for devices. Sign in with your e-mail address and password.";
  if (!canAddDevices()) return "Your role can only read. Ask an owner or a manager to add a device.";
  const { protocol, hostname } = location;
  if (protocol === "https:" || LOOPBACK.includes(hostname)) return "";
  return `This console was opened over plain HTTP (${location.host}), which agents refuse. Set up TLS first, and open the console by its https address.`;
}

async function create(event, hooks) {
  event.preventDefault();
  const form = event.target;
  const values = Object.fromEntries(new FormData(form));
  byId("create-command").disabled = true;
  byId("add-problem").textContent = "";
  try {
    const locationId = values.location === NEW ? await addLocation(form, values) : values.location;
    const system = SYSTEMS[values.system];
    const { key, secret } = await callConsole("profile/create-key", {
      name: `new device at ${locationId}`, canWrite: true, locations: [locationId], expiresUnused: true,
    });
    const options = `--base-url ${location.origin} --location ${(system.quote || quote)(locationId)}`;
    created = { key, devices: [], isRevoked: false };
    const locationText = form.elements.location.selectedOptions[0].textContent;
    replace(byId("command-box"), ...command(system, system.command(options), secret, locationText));
    byId("command-step").hidden = byId("arrival-step").hidden = false;
    replace(byId("arrival"), ...arrival());
    byId("copy-command").focus();
    hooks.refresh();
  } catch (error) {
    if (error.status === 401) return hooks.sessionEnded();
    byId("add-problem").textContent = error.message;
  } finally {
    if (byId("create-command")) byId("create-command").disabled = false;
  }
}

// The new location becomes an entry of the list, so that a second command does not add it again.
async function addLocation(form, { name, zone }) {
  const { locationId } = await callConsole("locations/add", { locationId: null, name, timeZone: zone });
  const entry = element("option", { value: locationId }, `${name.trim()} (${locationId})`);
  form.elements.location.prepend(entry);
  entry.selected = true;
  form.dispatchEvent(new Event("change"));
  return locationId;
}

function command({ before }, text, secret, locationText) {
  const status = element("span", { role: "status", class: "sub" });
  const keyStatus = element("span", { role: "status", class: "sub" });
  const code = element("code", { id: "command", tabindex: "0" }, text);
  const key = element("input", { id: "new-secret", class: "mono", readonly: true, value: secret, autocomplete: "off", "aria-label": "API key" });
  const isLocal = LOOPBACK.includes(location.hostname);
  return [
    element("p", {}, before),
    element("div", { class: "command" }, code,
      element("button", { type: "button", id: "copy-command", onclick: () => copyText(text, code, status) }, "Copy")), status,
    element("p", {}, "The command prompts for the API key. Paste this key, and press Enter:"),
    element("div", { class: "secret" }, key,
      element("button", { type: "button", id: "copy-key", onclick: () => copyText(secret, key, keyStatus) }, "Copy the key")), keyStatus,
    element("p", { class: "sub" }, `The key is for ${locationText}. It expires if no device uses it within an hour. It belongs to you, and ends with your membership.`),
    isLocal ? element("p", { class: "sub" }, `The address ${location.origin} works on this machine only.`) : null,
  ].filter(Boolean);
}

function arrival() {
  if (!created) return [];
  if (created.devices.length) {
    return [
      element("ul", { class: "cards" }, ...created.devices.map((device) => element("li", {}, element("span", { class: "pill good" }, "enrolled"), " ",
        element("a", { class: "name", href: `#/device/${device.instanceId}` }, device.name), element("p", { class: "sub" }, device.locationId)))),
      element("p", { class: "sub" }, "Open the device to request its first report. To add another device, create a new command."),
    ];
  }
  if (created.isRevoked) return [element("p", { class: "problem" }, "The key is no longer valid: it was not used in time, or it was revoked. Create a new command.")];
  return [element("p", { class: "waiting" }, element("span", { class: "spinner" }), "Waiting for the device. It appears here when the command has finished.")];
}
