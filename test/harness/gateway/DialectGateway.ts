import { Context, Effect, Layer } from "effect"
import { type CatalogRoute, chatCatalog } from "../fixtures/ChatCatalog.ts"
import { type Dialect, dialects } from "../upstream/Dialects.ts"
import * as Upstream from "../upstream/FakeUpstream.ts"
import * as Served from "./ServedGateway.ts"

/** One scripted host a dialect, shared by the tests of a file. */
export class DialectHosts extends Context.Tag("test/DialectHosts")<
  DialectHosts,
  { readonly of: (dialect: Dialect) => Upstream.FakeUpstream }
>() {}

const hosts = (among: ReadonlyArray<Dialect>) =>
  Layer.scoped(
    DialectHosts,
    Effect.gen(function* () {
      const byName = new Map<string, Upstream.FakeUpstream>()
      for (const { name } of among) byName.set(name, yield* Upstream.make)
      const nobody = yield* Upstream.make
      return { of: ({ name }) => byName.get(name) ?? nobody }
    })
  )

/** A route to a dialect's host, or to where nobody listens; no name of it may reach a client. */
export const routeTo = ({ name }: Dialect, more: { readonly preference?: number; readonly gone?: boolean } = {}) => {
  const { gone = false, ...rest } = more
  return { provider: `hush-${name}${gone ? "-gone" : ""}`, model: "hush-model", ...rest }
}

/** A gateway whose models are routed to these hosts. */
export const gateway = (
  models: Readonly<Record<string, ReadonlyArray<CatalogRoute & { readonly cost?: object }>>>,
  env: Readonly<Record<string, string>> = {},
  among: ReadonlyArray<Dialect> = dialects
) =>
  Served.layer(
    Effect.map(DialectHosts, ({ of }) => {
      const provider = (dialect: Dialect, url: string) => {
        return { adapter: dialect.name, base_url: dialect.baseUrl(url), credential: "HUSH_KEY" }
      }
      const open = among.map((one) => [routeTo(one).provider, provider(one, of(one).url)] as const)
      const gone = among.map(
        (one) => [routeTo(one, { gone: true }).provider, provider(one, "http://127.0.0.1:1")] as const
      )
      return {
        catalog: chatCatalog(Object.fromEntries([...open, ...gone]), models),
        env: { HUSH_KEY: "sk-hush", LOG_LEVEL: "none", ...env }
      }
    })
  ).pipe(Layer.provideMerge(hosts(among)))
