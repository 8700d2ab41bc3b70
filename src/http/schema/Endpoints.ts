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

/** The part of an `HttpApi` that lists its endpoints without building their schemas. */
export interface DeclaredApi {
  readonly groups: Readonly<Record<string, Group>>
}

export interface DeclaredEndpoint extends Declaration {
  readonly group: string
}

/** Returns all endpoints of an API. `HttpApi.reflect` would also build their schemas, a twentieth of the startup time. */
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
export const adminPrefix = "/admin/v1"

export const servedPath = ({ path }: { readonly path: string }): string => `${apiPrefix}${path}`
