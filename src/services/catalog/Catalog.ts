import { FileSystem } from "@effect/platform"
import type { PlatformError } from "@effect/platform/Error"
import { Context, Effect, Layer } from "effect"
import type { Model, ProviderAccount } from "../../domain/Model.ts"
import type { Adapters } from "./Adapters.ts"
import { compile, type Environment } from "./Compile.ts"
import { read } from "./Entries.ts"
import { type Offer, offers, type SandboxMode, sandboxAccounts } from "./Offer.ts"
import { CatalogInvalid } from "./Problem.ts"
import type { SourceFile } from "./Source.ts"

export interface CatalogOptions {
  readonly source: SourceFile
  /** Holds the providers' credentials; an empty or blank one counts as absent. */
  readonly environment: Environment
  /**
   * Whether the built-in sandbox serves models that have no route with a credential. It never joins a route
   * that has one. `when-no-credential`: only while no provider of the catalog has one.
   */
  readonly sandbox: SandboxMode
  /** The adapters this gateway was built with. */
  readonly adapters: Adapters
}

export interface CatalogProvider {
  readonly account: ProviderAccount
  /** The environment variable of its credential; undefined where it needs none. */
  readonly variable: string | undefined
  /** Whether its credential is present, or none is needed. */
  readonly ready: boolean
}

/** What the gateway sells: read once, then only looked up. */
export class Catalog extends Context.Tag("gateway/Catalog")<
  Catalog,
  {
    /** The callable models, in catalog order. */
    readonly models: ReadonlyArray<Model>
    /** A callable model. */
    readonly find: (id: string) => Model | undefined
    /** The models that cannot be called, and what is missing. */
    readonly off: ReadonlyArray<{ readonly id: string; readonly reason: string }>
    /** Whether the built-in sandbox serves any model for want of a credential. */
    readonly sandbox: boolean
    /** The catalog's providers, in its order, and those of the built-in sandbox while it serves. */
    readonly providers: ReadonlyArray<CatalogProvider>
  }
>() {
  static readonly make = (options: CatalogOptions): Effect.Effect<typeof Catalog.Service, CatalogInvalid> =>
    Effect.map(readOffers(options), ({ all, providers }) => {
      const models = all.flatMap(({ callable }) => (callable === undefined ? [] : [callable]))
      const byId = new Map(models.map((model) => [model.id, model]))
      const sandbox = all.some(({ sandboxed }) => sandboxed)
      const named = new Set(providers.map(({ account }) => account.name))
      const added = sandboxAccounts.filter(({ name }) => sandbox && !named.has(name))
      return {
        models,
        find: (id) => byId.get(id),
        off: all.flatMap(({ model, reason }) => (reason === undefined ? [] : [{ id: model.id, reason }])),
        sandbox,
        providers: [...providers, ...added.map((account) => ({ account, variable: undefined, ready: true }))]
      }
    })

  static readonly layer = (options: CatalogOptions): Layer.Layer<Catalog, CatalogInvalid> =>
    Layer.effect(Catalog, Catalog.make(options))
}

/** Every model of a catalog with what became of it, callable or not: what `Catalog` and its check are made of. */
export const readOffers = Effect.fn("Catalog.readOffers")(function* (options: CatalogOptions) {
  const entries = yield* read(options.source, options.adapters)
  const compiled = compile(entries, options.environment)
  const all: ReadonlyArray<Offer> = offers(compiled, options.adapters, options.sandbox)
  const providers: ReadonlyArray<CatalogProvider> = [...compiled.upstreams.values()].map(
    ({ account, ready, variable }) => ({ account, ready, variable })
  )
  return { all, providers, entries }
})

const unreadable = (error: PlatformError): string =>
  error._tag === "SystemError" && error.reason === "NotFound"
    ? "there is no such file; CATALOG_FILE names the catalog"
    : `cannot be read as CATALOG_FILE: ${error.description ?? error.message}`

/** Reads a catalog's text. A file that cannot be read is an invalid catalog. */
export const readCatalogFile = Effect.fn("Catalog.readFile")(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const text = yield* files
    .readFileString(path)
    .pipe(
      Effect.catchAll(
        (error) => new CatalogInvalid({ problems: [{ file: path, line: 1, key: "", message: unreadable(error) }] })
      )
    )
  return { file: path, text }
})
