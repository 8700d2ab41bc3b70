import { HttpApi } from "@effect/platform"
import { ResourceApi } from "../Api.ts"
import { AdminApi } from "../admin/AdminApi.ts"
import { pathOf } from "./GenerationRoutes.ts"
import { patternOf } from "./KnownPaths.ts"

/** What a request is counted as; the path has placeholders for ids. */
export interface ReadEndpoint {
  readonly surface: string
  readonly path: string | undefined
}

const system = [
  "/",
  "/docs",
  "/console",
  "/console/*",
  "/healthz",
  "/readyz",
  "/metrics",
  "/v1/openapi.json",
  "/admin/v1/openapi.json"
]

const declared: Array<{ readonly surface: string; readonly path: string }> = [
  ...system.map((path) => ({ surface: "system", path })),
  { surface: "media", path: "/media/*" }
]
HttpApi.reflect(ResourceApi, {
  onGroup: () => {},
  onEndpoint: ({ endpoint: { path }, group: { identifier } }) =>
    declared.push({ surface: identifier === "videos" ? "videos_read" : identifier, path })
})

HttpApi.reflect(AdminApi, {
  onGroup: () => {},
  onEndpoint: ({ endpoint: { path } }) => declared.push({ surface: "admin", path })
})

const endpoints = declared.map((endpoint) => ({ endpoint, pattern: patternOf(endpoint.path) }))

const none: ReadEndpoint = { surface: "none", path: undefined }

export const readEndpointOf = (target: string): ReadEndpoint => {
  const path = pathOf(target)
  return endpoints.find(({ pattern }) => pattern.test(path))?.endpoint ?? none
}
