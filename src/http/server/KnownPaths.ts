import { HttpApi } from "@effect/platform"
import { MisplacedVersion, UnknownEndpoint } from "../../domain/Failure.ts"
import { Api } from "../Api.ts"
import { pathOf } from "./GenerationRoutes.ts"

/** Matches the paths of an endpoint, whose parameters are written `:id` or `*`. */
export const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/]+").replace("*", ".*")}$`, "s")

const paths: Array<string> = ["/v1/openapi.json"]
HttpApi.reflect(Api, { onGroup: () => {}, onEndpoint: ({ endpoint: { path } }) => paths.push(path) })

const known = paths.map((path) => ({ shown: path.replaceAll(/:(\w+)/g, "{$1}"), pattern: patternOf(path) }))

export const unknownPath = (target: string): UnknownEndpoint | MisplacedVersion => {
  const path = pathOf(target)
  const versioned = path.replace(/^(?:\/v1(?=\/))*/, "/v1")
  const meant = versioned === path ? undefined : known.find(({ pattern }) => pattern.test(versioned))
  return meant === undefined ? new UnknownEndpoint() : new MisplacedVersion({ meant: meant.shown })
}
