import { HttpApi, HttpRouter } from "@effect/platform"
import { Effect } from "effect"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { AdminApi } from "./AdminApi.ts"
import { memberAccessOf, type OpenToMembers, requireOwnParameters, restrictAnswer } from "./Members.ts"

const nameOf = ({ method, path }: { readonly method: string; readonly path: string }) => `${method} ${path}`

const openEndpoints: ReadonlyMap<string, typeof OpenToMembers.Service> = (() => {
  const open = new Map<string, typeof OpenToMembers.Service>()
  HttpApi.reflect(AdminApi, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      const access = memberAccessOf(endpoint)
      if (access !== undefined) open.set(nameOf(endpoint), access)
    }
  })
  return open
})()

/** An endpoint that does not say what members see of it does not exist for them. */
export const restrictToMembers = Effect.gen(function* () {
  const { route } = yield* HttpRouter.RouteContext
  const access = openEndpoints.get(nameOf(route))
  if (access === undefined) return yield* new UnknownEndpoint()
  yield* requireOwnParameters(access)
  yield* restrictAnswer(access)
})
