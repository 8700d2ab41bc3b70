import { HttpRouter } from "@effect/platform"
import { Effect } from "effect"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { endpointsOf } from "../schema/Endpoints.ts"
import { AdminApi } from "./AdminApi.ts"
import { memberAccessOf, type OpenToMembers, requireOwnParameters, restrictAnswer } from "./Members.ts"

const nameOf = ({ method, path }: { readonly method: string; readonly path: string }) => `${method} ${path}`

const openEndpoints: ReadonlyMap<string, typeof OpenToMembers.Service> = new Map(
  endpointsOf(AdminApi).flatMap((endpoint) => {
    const access = memberAccessOf(endpoint)
    return access === undefined ? [] : [[nameOf(endpoint), access]]
  })
)

/** An endpoint that does not say what members see of it does not exist for them. */
export const restrictToMembers = Effect.gen(function* () {
  const { route } = yield* HttpRouter.RouteContext
  const access = openEndpoints.get(nameOf(route))
  if (access === undefined) return yield* new UnknownEndpoint()
  yield* requireOwnParameters(access)
  yield* restrictAnswer(access)
})
