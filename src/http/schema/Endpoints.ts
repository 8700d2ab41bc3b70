import type { HttpApiEndpoint, HttpApiMiddleware } from "@effect/platform"
import type { Context } from "effect"

interface Declaration {
  readonly method: string
  readonly path: HttpApiEndpoint.PathSegment
  readonly annotations: Context.Context<never>
  readonly middlewares: ReadonlySet<HttpApiMiddleware.TagClassAny>
}

interface Group extends Pick<Declaration, "middlewares"> {
  readonly identifier: string
  readonly endpoints: Readonly<Record<string, Declaration>>
}

/** What an `HttpApi` says of its endpoints beside their schemas. */
export interface DeclaredApi {
  readonly groups: Readonly<Record<string, Group>>
}

export interface DeclaredEndpoint extends Declaration {
  readonly group: string
}

/** All endpoints of an API. `HttpApi.reflect` puts their schemas together too, which takes a twentieth of a start. */
export const endpointsOf = ({ groups }: DeclaredApi): ReadonlyArray<DeclaredEndpoint> =>
  Object.values(groups).flatMap(({ endpoints, identifier, middlewares }) =>
    Object.values(endpoints).map((endpoint) => ({
      group: identifier,
      method: endpoint.method,
      path: endpoint.path,
      annotations: endpoint.annotations,
      middlewares: new Set([...middlewares, ...endpoint.middlewares])
    }))
  )

export const apiPrefix = "/v1"

/** The path at which an endpoint of the contract is served. */
export const servedPath = ({ path }: { readonly path: string }): string => `${apiPrefix}${path}`
