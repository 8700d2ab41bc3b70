import { Redacted } from "effect"
import type { DatedModel, Model, ProviderAccount, RouteOptions } from "../../domain/Model.ts"
import { findQuotes } from "../../domain/TextDecoding.ts"
import type { ProviderEntry } from "./CatalogFormat.ts"
import { contextOf, type Entries, sandboxAdapter } from "./CatalogRules.ts"
import { routeOptions } from "./CatalogSource.ts"
import { datesOf } from "./DatedPrices.ts"
import type { Mistake } from "./Malformed.ts"
import { type BaseOf, requireValue } from "./Surface.ts"
import { onEntry } from "./Surfaces.ts"

export type Environment = Readonly<Record<string, string | undefined>>

export interface Upstream {
  readonly account: ProviderAccount
  /** Undefined where no credential is needed. */
  readonly variable: string | undefined
  readonly ready: boolean
  readonly options: RouteOptions
}

export interface Compiled {
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly models: ReadonlyArray<Model>
}

/** Returns the trimmed value of the variable, or undefined if it is unset or blank. */
const credentialIn = ({ credential }: ProviderEntry, environment: Environment): string | undefined =>
  (credential === undefined ? undefined : environment[credential]?.trim()) || undefined

const problemOf = (secret: string): string | undefined =>
  findQuotes(secret) ?? (/^[\x20-\x7e]+$/.test(secret) ? undefined : "has an invalid character: set it again")

const findProblem = (entry: ProviderEntry, environment: Environment): string | undefined => {
  const secret = credentialIn(entry, environment)
  if (secret !== undefined) return problemOf(secret)
  const file = `${entry.credential}_FILE`
  return environment[file] === undefined
    ? undefined
    : `has no value: the file of ${file} is empty or cannot be read, or both variables are set`
}

/** Finds credentials that cannot be sent or would be refused. Messages omit their values. */
export const findBadCredentials = ({ providers }: Entries, environment: Environment): ReadonlyArray<Mistake> =>
  [...providers].flatMap(([name, entry]) => {
    const problem = findProblem(entry, environment)
    return problem === undefined
      ? []
      : [{ path: ["providers", name, "credential"], message: `${entry.credential} ${problem}` }]
  })

const upstream = (name: string, entry: ProviderEntry, environment: Environment): Upstream => {
  const secret = credentialIn(entry, environment)
  const present = secret !== undefined
  return {
    account: {
      name,
      adapter: entry.adapter,
      baseUrl: entry.base_url?.replace(/\/+$/, ""),
      credential: present ? Redacted.make(secret) : undefined,
      headers: entry.headers ?? {},
      ...(entry.trace_context === true && { sendsTraceContext: true })
    },
    variable: entry.credential,
    ready: present || entry.credential === undefined || entry.adapter === sandboxAdapter,
    options: routeOptions(entry.options)
  }
}

/** Numbers repeated pairs of model and provider. */
const makeBaseOf = (model: string, upstreams: Compiled["upstreams"]): BaseOf => {
  const seen = new Map<string, number>()
  return (entry) => {
    const nth = (seen.get(entry.provider) ?? 0) + 1
    seen.set(entry.provider, nth)
    const provider = requireValue(upstreams.get(entry.provider), entry.provider)
    return {
      id: `${model}@${entry.provider}${nth === 1 ? "" : `#${nth}`}`,
      provider: provider.account,
      model: entry.model,
      preference: entry.preference ?? 1,
      weight: entry.weight ?? 1,
      options: routeOptions(provider.options, entry.options)
    }
  }
}

export const compile = (entries: Entries, environment: Environment): Compiled => {
  const upstreams = new Map([...entries.providers].map(([name, entry]) => [name, upstream(name, entry, environment)]))
  const context = contextOf(entries)
  const models = entries.models.map(({ entry }) =>
    onEntry(entry, (surface, own): Model => {
      const compileEntry = (version: typeof own, next?: DatedModel): Model => ({
        ...surface.compile(version, makeBaseOf(entry.id, upstreams), context),
        ...(next && { next })
      })
      const next = datesOf(own).reduceRight<DatedModel | undefined>(
        (next, at) => ({ at, model: compileEntry(surface.entryAt(own, at), next) }),
        undefined
      )
      return compileEntry(own, next)
    })
  )
  return { upstreams, models }
}
