import { existsSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { Console, Effect, Predicate } from "effect"
import { run } from "../../src/cli.ts"
import { oldestTested } from "../../src/database/Requirements.ts"
import type { Model } from "../../src/domain/Model.ts"
import { Catalog } from "../../src/services/catalog/Catalog.ts"
import { catalogJsonSchema } from "../../src/services/catalog/CatalogProblems.ts"
import type { SandboxMode } from "../../src/services/catalog/SaleState.ts"
import { webhookEvents } from "../../src/services/webhooks/WebhookEvents.ts"
import { variables } from "../../src/settings/Variables.ts"
import { commandHelps } from "../cli/Helps.ts"
import { builtIn } from "../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../harness/It.ts"
import { registered } from "../providers/Registered.ts"
import { anchors, codeSpans, fences, links, type Page, page, pages, root, section, table } from "./Markdown.ts"

const settings = page("docs/operating/settings.md")
const monitoring = page("docs/operating/monitoring.md")
const catalogs = page("docs/operating/catalog.md")
const providers = page("docs/providers.md")

describe("the docs", () => {
  const broken = (from: Page) =>
    links(from).filter((target) => {
      if (/^[a-z]+:/.test(target)) return false
      const [file = "", anchor] = target.split("#")
      const found = file === "" ? from.file : path.join(path.dirname(from.file), file)
      if (!existsSync(path.join(root, found))) return true
      return anchor !== undefined && !anchors(page(found)).has(anchor)
    })
  for (const one of pages) {
    it(`${one.file} links to what exists`, () => assert.deepStrictEqual(broken(one), []))
  }

  it("README.md leads to every page", () => {
    const reached = new Set(["README.md"])
    for (const file of reached) {
      const known = pages.find((one) => one.file === file)
      if (known === undefined) continue
      for (const target of links(known)) reached.add(path.join(path.dirname(file), target.split("#")[0] ?? ""))
    }
    assert.deepStrictEqual(
      pages.map(({ file }) => file).filter((file) => !reached.has(file)),
      []
    )
  })

  it("name sources that exist", () => {
    const sources = ["src", "test"].flatMap((directory) =>
      readdirSync(path.join(root, directory), { recursive: true, encoding: "utf8" }).map(
        (file) => `/${directory}/${file}`
      )
    )
    const named = pages.flatMap((one) => codeSpans(one).filter((code) => /^\w[\w./-]*\.ts$/.test(code)))
    assert.isAbove(named.length, 50)
    assert.deepStrictEqual(
      named.filter((name) => !sources.some((source) => source.endsWith(`/${name}`))),
      []
    )
  })

  it("the settings are those of the program", () => {
    assert.deepStrictEqual(
      table(section(settings, "Settings"), "Variable"),
      Object.values(variables).map(({ defaultText, description, variable }) => [variable, defaultText, description])
    )
  })

  it("the metrics are those that are counted", () => {
    const sources = ["src/services/metrics/Metrics.ts", "src/http/system/SystemHandlers.ts"].map(
      (file) => page(file).text
    )
    const declared = sources.flatMap((text) =>
      Array.from(text.matchAll(/"((?:gateway|process|nodejs)_\w+)"/g), ([, name = ""]) => name)
    )
    const health = section(monitoring, "Health and metrics")
    const documented = ["Metric", "Metric from the database"].flatMap((heading) =>
      table(health, heading).map(([name = ""]) => name)
    )
    assert.deepStrictEqual(documented.toSorted(), declared.toSorted())

    const named = pages.flatMap(({ text }) => text.match(/\bgateway_\w+(?<!_(?:bucket|sum|count))\b/g) ?? [])
    assert.deepStrictEqual(
      named.filter((name) => !declared.includes(name)),
      []
    )
  })

  it("the webhooks are those that are written", () => {
    const directories = ["src/services", "migrations"]
    const subjects = Object.keys(webhookEvents).map((event) => event.replace(/\..*/, ""))
    const sources = directories.flatMap((directory) =>
      readdirSync(path.join(root, directory), { recursive: true, encoding: "utf8" })
        // That file lists them: what counts is who writes them.
        .filter((file) => /\.(?:ts|sql)$/.test(file) && !file.endsWith("webhooks/Events.ts"))
        // The audit names its actions alike.
        .map((file) => page(path.join(directory, file)).text.replaceAll(/"credits\.(?:adjust|refund)"/g, ""))
    )
    const written = sources.flatMap((text) =>
      Array.from(
        text.matchAll(new RegExp(`["'\`]((?:${subjects.join("|")})\\.[a-z]+)["'\`]`, "g")),
        ([, type = ""]) => type
      )
    )
    const webhooks = page("docs/webhooks.md")
    const documented = table(section(webhooks, "Events"), "`type`").map(([type = ""]) => type)
    assert.deepStrictEqual(documented.toSorted(), [...new Set(written)].toSorted())
  })

  it("name the oldest PostgreSQL that is tested", () => {
    const sizes = table(section(page("docs/production.md"), "1. Size it"), "Part")
    const [, said] = sizes.find(([part]) => part === "PostgreSQL") ?? []
    assert.match(said ?? "", new RegExp(`^${oldestTested} or newer`))
  })

  it("every alert leads to a page", () => {
    const runbooks = Array.from(
      page("deploy/alerts.yaml").text.matchAll(/runbook: ([^\s}]+)/g),
      ([, file = ""]) => file
    )
    assert.lengthOf(runbooks, page("deploy/alerts.yaml").text.match(/- alert:/g)?.length ?? 0)
    for (const file of runbooks) assert.isTrue(existsSync(path.join(root, file)), file)
  })
})

describe("the catalogs of the docs", () => {
  const blocks = pages.flatMap((one) =>
    fences(one, "yaml")
      .filter((block) => block.startsWith("providers:"))
      .map((text, index) => ({ file: `${one.file} block ${index + 1}`, text }))
  )

  it("are there", () => assert.isAbove(blocks.length, 2))

  for (const source of blocks) {
    it.effect(`${source.file} is valid, and on once its credentials are set`, function* () {
      const variables = [...source.text.matchAll(/credential: (\w+)/g)].map(([, name = ""]) => name)
      const environment = Object.fromEntries(variables.map((name) => [name, "key"]))
      const adapters = yield* registered
      const { models, offModels: off } = yield* Catalog.make({ source, environment, sandbox: false, adapters })
      assert.isAbove(models.length, 0)
      assert.deepStrictEqual(off, [])
    })
  }

  it("explain every key of the format", () => {
    const keys = new Set<string>()
    const collect = (schema: unknown): void => {
      if (Array.isArray(schema)) return schema.forEach(collect)
      if (!Predicate.isRecord(schema)) return
      const { properties } = schema
      if (Predicate.isRecord(properties)) for (const key of Object.keys(properties)) keys.add(key)
      Object.values(schema).forEach(collect)
    }
    collect(catalogJsonSchema())
    assert.isAbove(keys.size, 40)
    const catalog = ["The catalog", "Markup", "Prices with a date"]
      .map((heading) => section(catalogs, heading))
      .join("")
    assert.deepStrictEqual(
      [...keys].filter((key) => !new RegExp(`[\`{ ,*]${key}[\`:,}]`).test(catalog)),
      []
    )
  })

  it.effect("name the wire formats of the program", function* () {
    const surfaces = ["chat", "image", "video"] as const
    const rows = new Map(
      table(section(providers, "Wire formats"), "`adapter`").map(([name, ...cells]) => [name, cells])
    )
    const adapters = yield* registered
    for (const [name, served] of adapters) {
      const [, ...cells] = rows.get(name) ?? assert.fail(`${name} has no row`)
      const spoken = surfaces.map((surface) => (served.surfaces.has(surface) ? "yes" : ""))
      assert.deepStrictEqual(cells.slice(0, surfaces.length), spoken, name)
      assert.isNotEmpty(cells[surfaces.length], `${name}: what it cannot do`)
    }
    assert.sameMembers([...rows.keys()], [...adapters.keys()])
  })

  it.effect("tell the truth of the one step from the sandbox to a vendor", function* () {
    const [step = ""] = fences({ file: "", text: section(providers, "Your own keys") }, "sh")
    const [, name = "", file] = /echo '(\w+)=…' >> (\S+)\nnpm start/.exec(step) ?? []
    assert.strictEqual(file, ".env")
    const adapters = yield* registered
    const source = { file: "catalog.yaml", text: builtIn }
    const start = (sandbox: SandboxMode, environment = {}) => Catalog.make({ source, environment, sandbox, adapters })
    const isSandboxed = ({ routes }: Model) => routes.some(({ provider }) => provider.adapter === "sandbox")
    const before = yield* start("when-no-credential")
    assert.deepStrictEqual([before.models.length, before.models.every(isSandboxed)], [45, true])
    const after = yield* start("when-no-credential", { [name]: "key" })
    assert.deepStrictEqual([after.models.length, after.models.some(isSandboxed)], [9, false])
    const beside = yield* start(true, { [name]: "key" })
    assert.deepStrictEqual([beside.models.length, beside.models.filter(isSandboxed).length], [45, 36])
  })

  it.effect("tell what each credential turns on", function* () {
    const adapters = yield* registered
    const rows = table(section(page("docs/getting-started.md"), "7. Switch to a real provider"), "Variable")
    assert.isAbove(rows.length, 0)
    for (const [name = "", claim = ""] of rows) {
      const source = { file: "catalog.yaml", text: builtIn }
      const { models } = yield* Catalog.make({ source, environment: { [name]: "key" }, sandbox: false, adapters })
      const prefix = /`(\w+-)…`/.exec(claim)?.[1] ?? ""
      assert.isTrue(
        models.every(({ id }) => id.startsWith(prefix)),
        name
      )
      assert.strictEqual(models.length, Number(/\d+/.exec(claim)?.[0]), name)
    }
  })
})

/** What the program prints for these arguments. */
const printed = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
  const own = yield* Console.consoleWith(Effect.succeed)
  const texts: Array<string> = []
  const keeping: Console.Console = { ...own, log: (...all) => Effect.sync(() => void texts.push(all.join(" "))) }
  const serve = () => Effect.dieMessage("nothing is to be served")
  assert.strictEqual(yield* Effect.withConsole(run(["node", "gateway", ...args], { serve }), keeping), 0)
  return texts.join("\n")
})

describe("the commands of the docs", () => {
  const invocation = /^(?:[A-Z_]+=\S+ )*(?:npx )?gateway ([a-z].*)$/
  const invocations = pages.flatMap((one) =>
    [...fences(one, "sh").flatMap((block) => block.split("\n")), ...codeSpans(one)].flatMap((text) => {
      const [, words] = invocation.exec(text.trim()) ?? []
      return words === undefined ? [] : [words]
    })
  )

  it.effect("exist, with their options", function* () {
    const known = new Map((yield* commandHelps(printed)).map(({ name, options }) => [name, new Set(options)]))
    assert.isAbove(known.size, 20)
    assert.isAbove(invocations.length, 40)
    const named = new Set<string>()
    const wrong = invocations.filter((words) => {
      const [first = "", second = ""] = words.split(" ")
      const name = known.has(`${first} ${second}`) ? `${first} ${second}` : first
      const options = known.get(name)
      // A word that only groups commands is no command.
      if (
        options === undefined ||
        (options.size === 1 && [...known.keys()].some((other) => other.startsWith(`${name} `)))
      ) {
        return !words.endsWith("…")
      }
      named.add(name)
      return (words.match(/--[a-z-]+/g) ?? []).some((option) => !options.has(option))
    })
    assert.deepStrictEqual(wrong, [])
    const commands = [...known.keys()].filter((name) => ![...known.keys()].some((it) => it.startsWith(`${name} `)))
    assert.deepStrictEqual(
      commands.filter((name) => !named.has(name)),
      [],
      "every command is shown somewhere"
    )
  })

  it("npm scripts of the docs exist", () => {
    const scripts = Object.keys(JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")).scripts)
    const used = pages.flatMap((one) =>
      fences(one, "sh").flatMap((block) =>
        [...block.matchAll(/npm (?:run )?([a-z][a-z:-]*)/g)].map(([, name = ""]) => name)
      )
    )
    assert.includeMembers([...scripts, "ci", "install"], used)
  })
})
