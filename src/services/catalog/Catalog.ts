import { createHash } from "node:crypto"
import { FileSystem } from "@effect/platform"
import type { PlatformError } from "@effect/platform/Error"
import { Array as Arr, Clock, Context, Effect, Either, Layer } from "effect"
import { type Model, modelAt, type ProviderAccount } from "../../domain/Model.ts"
import { vendorNameFinder } from "../../domain/ModelNames.ts"
import { discountModel } from "../../domain/Pricing.ts"
import { decodeTextFile } from "../../domain/TextDecoding.ts"
import { compile, type Environment, read, type Upstream } from "./CatalogEntries.ts"
import { CatalogInvalid, NothingToServe, type SourceFile } from "./CatalogSource.ts"
import type { Adapters } from "./EntryFields.ts"
import { type SaleState, type SandboxMode, saleStates, sandboxAccounts } from "./SaleState.ts"

export interface CatalogOptions {
  readonly source: SourceFile
  /** The environment variables, which contain the credentials. Blank values count as unset. */
  readonly environment: Environment
  /** Whether the sandbox serves models without a credential. */
  readonly sandbox: SandboxMode
  readonly adapters: Adapters
}

/** A compiled catalog. Immutable. */
export interface CatalogSnapshot {
  readonly models: ReadonlyArray<Model>
  /** Finds a model by its id or by a vendor name such as `openai/gpt-5.5`. Returns it with its first prices. */
  readonly find: (name: string) => Model | undefined
  /**
   * Finds a model as `find` does. Returns it with the prices that apply at a moment in Unix milliseconds, less an
   * organization's discount in percent.
   */
  readonly findAt: (name: string, at: number, discountPercent?: number) => Model | undefined
  /** The discounts in percent of all calls of `findAt`, whose price lists must be stored. */
  readonly discounts: ReadonlySet<number>
  /** Finds a model by its id only. Returns it with its first prices. */
  readonly findId: (id: string) => Model | undefined
  /** The moments at which a price or a cost changes, in Unix milliseconds. */
  readonly changes: ReadonlyArray<number>
  /** All models of the file, including those that cannot be called. */
  readonly saleStates: ReadonlyArray<SaleState>
  readonly offModels: ReadonlyArray<{ readonly id: string; readonly reason: string }>
  readonly sandbox: boolean
  /** The file's providers, then the sandbox's accounts if it serves a model. */
  readonly providers: ReadonlyArray<Omit<Upstream, "options">>
  /** Hash of the file's text, without credentials. */
  readonly fingerprint: string
}

export class Catalog extends Context.Tag("gateway/Catalog")<
  Catalog,
  {
    /** A reload replaces it, so read it once per request, never while a layer is built. */
    readonly current: CatalogSnapshot
    /** The accounts that can be called, then those that a reload has removed: unfinished videos still need them. */
    readonly accounts: ReadonlyArray<ProviderAccount>
    /** Reads the file and the credentials again. A failure changes nothing. */
    readonly reload: Effect.Effect<CatalogSnapshot, CatalogInvalid | NothingToServe>
  }
>() {
  static readonly make = (options: CatalogOptions): Effect.Effect<CatalogSnapshot, CatalogInvalid> =>
    Effect.map(readSaleStates(options), ({ all: states, providers }) => {
      const models = states.flatMap(({ callable }) => (callable === undefined ? [] : [callable]))
      const byId = new Map(models.map((model) => [model.id, model]))
      const findVendorName = vendorNameFinder(models)
      const find = (name: string) => byId.get(name) ?? findVendorName(name)
      const hasSandbox = states.some(({ isSandboxed }) => isSandboxed)
      const providerNames = new Set(providers.map(({ account }) => account.name))
      const addedAccounts = sandboxAccounts.filter(({ name }) => hasSandbox && !providerNames.has(name))
      const discounts = new Set<number>()
      return {
        models,
        find,
        findAt: (name, at, discountPercent = 0) => {
          const model = find(name)
          if (discountPercent !== 0) discounts.add(discountPercent)
          return model && discountModel(modelAt(model, at), discountPercent)
        },
        discounts,
        findId: (id) => byId.get(id),
        changes: Arr.dedupe(states.flatMap(({ model }) => changesOf(model))),
        saleStates: states,
        offModels: states.flatMap(({ model, reason }) => (reason === undefined ? [] : [{ id: model.id, reason }])),
        sandbox: hasSandbox,
        providers: [...providers, ...addedAccounts.map((account) => ({ account, variable: undefined, isReady: true }))],
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
            return yield* refuseSandbox(next)
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

/** Fails after five seconds, because a file system that hangs must block neither later reloads nor a stop. */
const withTimeLimit = <A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | CatalogInvalid> =>
  Effect.timeoutFail(Effect.interruptible(read), {
    duration: "5 seconds",
    onTimeout: () =>
      new CatalogInvalid({
        problems: [{ file: "CATALOG_FILE", line: 1, key: "", message: "was not read within 5 seconds" }]
      })
  })

const readyAccounts = ({ providers }: CatalogSnapshot): ReadonlyArray<ProviderAccount> =>
  providers.flatMap(({ account, isReady }) => (isReady ? account : []))

export const isSameAccount = (
  one: Pick<ProviderAccount, "name" | "adapter" | "baseUrl">,
  other: Pick<ProviderAccount, "name" | "adapter" | "baseUrl">
): boolean => one.name === other.name && one.adapter === other.adapter && one.baseUrl === other.baseUrl

const credentialVariablesOf = ({ providers }: CatalogSnapshot): string =>
  [...new Set(providers.flatMap(({ variable }) => variable ?? []))].join(", ")

export const requireModels = (snapshot: CatalogSnapshot): Effect.Effect<void, NothingToServe> =>
  snapshot.models.length > 0
    ? Effect.void
    : new NothingToServe({
        message: `No model can be served: set a provider's credential (${credentialVariablesOf(snapshot)}), or SANDBOX=true to try the gateway offline.`
      })

const refuseSandbox = (snapshot: CatalogSnapshot) =>
  new NothingToServe({
    message: `No provider has a credential any more (${credentialVariablesOf(snapshot)}). The sandbox would charge customers for generated samples: set SANDBOX=true to allow that.`
  })

/**
 * Returns an effect that computes the value once, and again after a reload or a price change. `now` is in Unix
 * milliseconds.
 */
export const cachePerSnapshot = <A>(
  catalog: typeof Catalog.Service,
  compute: (snapshot: CatalogSnapshot, now: number) => A
): Effect.Effect<A> => {
  let cached: { readonly of: CatalogSnapshot; readonly passedChanges: number; readonly value: A } | undefined
  return Effect.map(Clock.currentTimeMillis, (now) => {
    const { current } = catalog
    const passedChanges = current.changes.filter((at) => at <= now).length
    if (cached?.of !== current || cached.passedChanges !== passedChanges)
      cached = { of: current, passedChanges, value: compute(current, now) }
    return cached.value
  })
}

export const readSaleStates = Effect.fn("Catalog.readOffers")(function* (options: CatalogOptions) {
  const entries = yield* read(options.source, options.adapters, options.environment)
  const compiled = compile(entries, options.environment)
  const all: ReadonlyArray<SaleState> = saleStates(compiled, options.sandbox)
  return { all, providers: [...compiled.upstreams.values()], entries }
})

const explainUnreadable = (error: PlatformError): string =>
  error._tag === "SystemError" && error.reason === "NotFound"
    ? "the file does not exist: check CATALOG_FILE"
    : `CATALOG_FILE cannot be read: ${error.description ?? error.message}`

export const readCatalogFile = Effect.fn("Catalog.readFile")(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const refuse = (message: string) => new CatalogInvalid({ problems: [{ file: path, line: 1, key: "", message }] })
  const bytes = yield* Effect.mapError(files.readFile(path), (error) => refuse(explainUnreadable(error)))
  const text = yield* Either.mapLeft(decodeTextFile(bytes), (reason) => refuse(`cannot be read: ${reason}`))
  return { file: path, text }
})
