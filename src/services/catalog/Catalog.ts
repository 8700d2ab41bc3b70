import { FileSystem } from "@effect/platform"
import type { PlatformError } from "@effect/platform/Error"
import { Context, Effect, Layer } from "effect"
import type { Model, ProviderAccount } from "../../domain/Model.ts"
import type { Adapters } from "./AdapterFeatures.ts"
import type { SourceFile } from "./CatalogSource.ts"
import { compile, type Environment } from "./Compile.ts"
import { read } from "./Entries.ts"
import { type Offer, offers, type SandboxMode, sandboxAccounts } from "./Offer.ts"
import { CatalogInvalid } from "./Problem.ts"

export interface CatalogOptions {
  readonly source: SourceFile
  /** Holds the credentials; a blank one counts as absent. */
  readonly environment: Environment
  /** Serves models without a credential from the sandbox; `when-no-credential`: only if no provider has one. */
  readonly sandbox: SandboxMode
  readonly adapters: Adapters
}

export interface CatalogProvider {
  readonly account: ProviderAccount
  /** Undefined where no credential is needed. */
  readonly variable: string | undefined
  readonly ready: boolean
}

export class Catalog extends Context.Tag("gateway/Catalog")<
  Catalog,
  {
    readonly models: ReadonlyArray<Model>
    readonly find: (id: string) => Model | undefined
    readonly off: ReadonlyArray<{ readonly id: string; readonly reason: string }>
    readonly sandbox: boolean
    /** In catalog order, then the sandbox's if it serves. */
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
