// Shows one OpenAPI document of this service with Swagger UI.

const DOCUMENTS = { facade: "/openapi.json", retail: "/api/v1/openapi.json" };
const chosen = new URLSearchParams(location.search).get("api") === "retail" ? "retail" : "facade";
const dark = matchMedia("(prefers-color-scheme: dark)");
const showTheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);

document.getElementById(chosen).ariaCurrent = "page";
document.getElementById("document").href = DOCUMENTS[chosen];
showTheme();
dark.addEventListener("change", showTheme);
SwaggerUIBundle({
  url: DOCUMENTS[chosen], dom_id: "#viewer", validatorUrl: "none", docExpansion: "list", deepLinking: false,
  defaultModelsExpandDepth: -1, displayRequestDuration: true, queryConfigEnabled: false, supportedSubmitMethods: [],
});
