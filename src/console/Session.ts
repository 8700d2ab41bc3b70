import type { SessionRecord } from "../http/admin/session/Schema.ts"
import { ApiError } from "./api/ApiError.ts"
import { get, makeIdempotencyKey, refusals, write } from "./api/Client.ts"
import { asApiError } from "./api/useResource.ts"
import { makeStore, useStore } from "./Store.ts"

export type Session = typeof SessionRecord.Encoded
type Role = Session["operator"]["role"]

type State =
  | { readonly is: "loading" }
  | { readonly is: "signed out"; readonly error?: ApiError }
  | { readonly is: "signed in"; readonly session: Session }

const state = makeStore<State>({ is: "loading" })

export const useSessionState = (): State => useStore(state)

const ranks: Readonly<Record<Role, number>> = { read: 0, write: 1, owner: 2 }

/** Whether the operator may do what needs the role. */
export const useRole = (role: Role): boolean => {
  const current = useSessionState()
  return current.is === "signed in" && ranks[current.session.operator.role] >= ranks[role]
}

const enter = (session: Session) => state.set({ is: "signed in", session })
const refuse = (error: unknown) => state.set({ is: "signed out", error: asApiError(error) })

export const signIn = (credential: { readonly token: string } | { readonly link: string }): Promise<void> =>
  write<Session>("POST", "/session", credential, makeIdempotencyKey()).then(enter, refuse)

export const signOut = async (): Promise<void> => {
  await write("DELETE", "/session", undefined, makeIdempotencyKey()).catch(() => undefined)
  state.set({ is: "signed out" })
}

/** A one-time link leaves the address before it is redeemed. */
export const resumeSession = async (): Promise<void> => {
  const [, link] = /^#link=(.+)$/.exec(location.hash) ?? []
  refusals.subscribe(() => {
    if (state.get().is === "signed in") state.set({ is: "signed out" })
  })
  if (link !== undefined) {
    location.replace("#/")
    return signIn({ link })
  }
  return get<Session>("/session", {}, new AbortController().signal).then(enter, (error: unknown) => {
    if (error instanceof ApiError && error.status === 401) state.set({ is: "signed out" })
    else refuse(error)
  })
}
