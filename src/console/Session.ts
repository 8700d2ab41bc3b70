import type { SessionRecord } from "../http/admin/Session.ts"
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

const useSession = (): Session | undefined => {
  const current = useSessionState()
  return current.is === "signed in" ? current.session : undefined
}

/** The organization whose member has signed in; undefined for an operator of the gateway. */
export const useMembership = (): Session["organization"] => useSession()?.organization

/** The least and the most that one payment can be; null where payments are not set up. */
export const usePaymentLimits = (): Session["payments"] => useSession()?.payments ?? null

const ranks: Readonly<Record<Role, number>> = { read: 0, write: 1, owner: 2 }

/** Whether the operator may do what needs the role. */
export const useRole = (role: Role): boolean => {
  const session = useSession()
  return session !== undefined && ranks[session.operator.role] >= ranks[role]
}

/** Whether it is not for those who have signed in: members see nothing that is internal. */
export const useHidden = (isInternal = false): boolean => useMembership() !== undefined && isInternal

export const useVisible = <A extends { readonly isInternal?: boolean }>(all: ReadonlyArray<A>): ReadonlyArray<A> =>
  useHidden(true) ? all.filter(({ isInternal }) => !isInternal) : all

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
