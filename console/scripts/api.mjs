// Writes the types of the admin API from its OpenAPI document.
// The output is not committed: `build` and `check` write it anew, so it cannot differ from the document.

import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const api = JSON.parse(await readFile(new URL("../../docs/reference/openapi.json", import.meta.url), "utf8"));

// Operations of several tags share their ids, such as `show`, and the generator would take one for the other.
for (const path of Object.values(api.paths)) {
  for (const operation of Object.values(path)) delete operation.operationId;
}

const types = astToString(await openapiTS(api, { silent: true }));
await writeFile(new URL("../src/api/schema.d.ts", import.meta.url), types);
