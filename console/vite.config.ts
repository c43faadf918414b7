import { defineConfig } from "vite";

const admin = process.env["IMORI_ADMIN"] ?? "http://127.0.0.1:15672";

export default defineConfig({
  base: "/console/",
  build: {
    target: "es2022",
    // The polyfill for module preloading is for browsers older than the target.
    modulePreload: { polyfill: false },
    // A `data:` URL in a stylesheet would need more of the content security policy than the broker gives.
    assetsInlineLimit: 0,
    // One file for what most pages share; without it a page is a dozen requests for a kilobyte each.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "parts", test: /src\/(?:parts\/(?!chart)|feed|api|payload|route)/ }] } } },
  },
  server: { proxy: { "/v1": admin, "/api": admin } },
});
