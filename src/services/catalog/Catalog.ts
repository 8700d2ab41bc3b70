import { createHash } from "node:crypto"
import { FileSystem } from "@effect/platform"
import type { PlatformError } from "@effect/platform/Error"
import { Array as Arr, Clock, Context, Effect, Either, Layer } from "effect"
import { type Model, modelAt, type ProviderAccount } from "../../domain/Model.ts"
import { vendorNameFinder } from "../../domain/ModelNames.ts"
import { decodeTextFile } from "../../domain/TextDecoding.ts"
import type { Adapters } from "./AdapterFeatures.ts"
import type { SourceFile } from "./CatalogSource.ts"
import { compile, type Environment, type Upstream } from "./Compile.ts"
import { read } from "./Entries.ts"
import { type Offer, offers, type SandboxMode, sandboxAccounts } from "./Offer.ts"
import { CatalogInvalid, NothingToServe } from "./Problem.ts"

export interface CatalogOptions {
  readonly source: SourceFile
  /** Holds the credentials; a blank one counts as absent. */
  readonly environment: Environment
  /** Serves models without a credential from the sandbox; `when-no-credential`: only if no provider has one. */
  readonly sandbox: SandboxMode
  readonly adapters: Adapters
}

/** A compiled catalog, which never changes. */
export interface CatalogSnapshot {
  readonly models: ReadonlyArray<Model>
  /** By its id, or by a name such as `openai/gpt-5.5` where the id is no other's end; with its first prices. */
  readonly find: (name: string) => Model | undefined
  /** As `find`, with the prices of a moment, in Unix milliseconds: what a request is charged by. */
  readonly findAt: (name: string, at: number) => Model | undefined
  /** With its first prices. */
  readonly findId: (id: string) => Model | undefined
  /** When a price or a cost changes, in Unix milliseconds. */
  readonly changes: ReadonlyArray<number>
  /** Every model of the file, those that are off too. */
  readonly offers: ReadonlyArray<Offer>
  readonly off: ReadonlyArray<{ readonly id: string; readonly reason: string }>
  readonly sandbox: boolean
  /** In catalog order, then the sandbox's if it serves. */
  readonly providers: ReadonlyArray<Omit<Upstream, "options">>
  /** Hash of the file's text, without credentials. */
  readonly fingerprint: string
}

export class Catalog extends Context.Tag("gateway/Catalog")<
  Catalog,
  {
    /** Replaced by a reload: read it once for each request, never while a layer is built. */
    readonly current: CatalogSnapshot
    /** Those that can be called; then those that reloads have removed, for the renders begun with them. */
    readonly accounts: ReadonlyArray<ProviderAccount>
    /** Reads file and credentials again; a failure changes nothing. */
    readonly reload: Effect.Effect<CatalogSnapshot, CatalogInvalid | NothingToServe>
  }
>() {
  static readonly make = (options: CatalogOptions): Effect.Effect<CatalogSnapshot, CatalogInvalid> =>
    Effect.map(readOffers(options), ({ all, providers }) => {
      const models = all.flatMap(({ callable }) => (callable === undefined ? [] : [callable]))
      const byId = new Map(models.map((model) => [model.id, model]))
      const findVendorName = vendorNameFinder(models)
      const find = (name: string) => byId.get(name) ?? findVendorName(name)
      const sandbox = all.some(({ sandboxed }) => sandboxed)
      const named = new Set(providers.map(({ account }) => account.name))
      const added = sandboxAccounts.filter(({ name }) => sandbox && !named.has(name))
      return {
        models,
        find,
        findAt: (name, at) => {
          const found = find(name)
          return found && modelAt(found, at)
        },
        findId: (id) => byId.get(id),
        changes: Arr.dedupe(all.flatMap(({ model }) => changesOf(model))),
        offers: all,
        off: all.flatMap(({ model, reason }) => (reason === undefined ? [] : [{ id: model.id, reason }])),
        sandbox,
        providers: [...providers, ...added.map((account) => ({ account, variable: undefined, ready: true }))],
        fingerprint: createHash("sha256").update(options.source.text).digest("hex").slice(0, 12)
      }
    })

  static readonly layer = (read: Effect.Effect<CatalogOptions, CatalogInvalid>): Layer.Layer<Catalog, CatalogInvalid> =>
    Layer.effect(
      Catalog,
      Effect.gen(function* () {
        let current = yield* Effect.flatMap(read, Catalog.make)
        let accounts = readyAccounts(current)
        const reload = Effect.gen(function* () {
          const options = yield* withTimeLimit(read)
          const next = yield* Catalog.make(options)
          yield* requireModels(next)
          if (next.sandbox && !current.sandbox && options.sandbox === "when-no-credential")
            return yield* sandboxWouldServe(next)
          const ready = readyAccounts(next)
          accounts = [...ready, ...accounts.filter((one) => !ready.some((other) => isSameAccount(one, other)))]
          current = next
          return next
        })
        const oneAtATime = yield* Effect.makeSemaphore(1)
        return Catalog.of({
          get current() {
            return current
          },
          get accounts() {
            return accounts
          },
          reload: oneAtATime.withPermits(1)(reload)
        })
      })
    )
}

const changesOf = ({ next }: Model): ReadonlyArray<number> =>
  next === undefined ? [] : [next.at, ...changesOf(next.model)]

/** A file system that hangs must block neither later reloads nor a stop. */
const withTimeLimit = <A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | CatalogInvalid> =>
  Effect.timeoutFail(Effect.interruptible(read), {
    duration: "5 seconds",
    onTimeout: () =>
      new CatalogInvalid({
        problems: [{ file: "CATALOG_FILE", line: 1, key: "", message: "was not read within 5 seconds" }]
      })
  })

const readyAccounts = ({ providers }: CatalogSnapshot): ReadonlyArray<ProviderAccount> =>
  providers.flatMap(({ account, ready }) => (ready ? account : []))

export const isSameAccount = (
  one: Pick<ProviderAccount, "name" | "adapter" | "baseUrl">,
  other: Pick<ProviderAccount, "name" | "adapter" | "baseUrl">
): boolean => one.name === other.name && one.adapter === other.adapter && one.baseUrl === other.baseUrl

const variablesOf = ({ providers }: CatalogSnapshot): string =>
  [...new Set(providers.flatMap(({ variable }) => variable ?? []))].join(", ")

export const requireModels = (snapshot: CatalogSnapshot): Effect.Effect<void, NothingToServe> =>
  snapshot.models.length > 0
    ? Effect.void
    : new NothingToServe({
        message: `No model can be served: set a provider's credential (${variablesOf(snapshot)}), or SANDBOX=true to try the gateway offline.`
      })

const sandboxWouldServe = (snapshot: CatalogSnapshot) =>
  new NothingToServe({
    message: `No provider has its credential any more (${variablesOf(snapshot)}); customers are charged for what the sandbox makes up, so it takes over with SANDBOX=true only.`
  })

/** Computes once for each snapshot, and again when a price changes; `now` is in Unix milliseconds. */
export const perSnapshot = <A>(
  catalog: typeof Catalog.Service,
  compute: (snapshot: CatalogSnapshot, now: number) => A
): Effect.Effect<A> => {
  let known: { readonly of: CatalogSnapshot; readonly passed: number; readonly value: A } | undefined
  return Effect.map(Clock.currentTimeMillis, (now) => {
    const { current } = catalog
    const passed = current.changes.filter((at) => at <= now).length
    if (known?.of !== current || known.passed !== passed) known = { of: current, passed, value: compute(current, now) }
    return known.value
  })
}

export const readOffers = Effect.fn("Catalog.readOffers")(function* (options: CatalogOptions) {
  const entries = yield* read(options.source, options.adapters, options.environment)
  const compiled = compile(entries, options.environment)
  const all: ReadonlyArray<Offer> = offers(compiled, options.adapters, options.sandbox)
  return { all, providers: [...compiled.upstreams.values()], entries }
})

const explainUnreadable = (error: PlatformError): string =>
  error._tag === "SystemError" && error.reason === "NotFound"
    ? "there is no such file; CATALOG_FILE names the catalog"
    : `cannot be read as CATALOG_FILE: ${error.description ?? error.message}`

export const readCatalogFile = Effect.fn("Catalog.readFile")(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const refuse = (message: string) => new CatalogInvalid({ problems: [{ file: path, line: 1, key: "", message }] })
  const bytes = yield* Effect.mapError(files.readFile(path), (error) => refuse(explainUnreadable(error)))
  const text = yield* Either.mapLeft(decodeTextFile(bytes), (reason) => refuse(`cannot be read: ${reason}`))
  return { file: path, text }
})
