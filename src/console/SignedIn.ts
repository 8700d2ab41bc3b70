import type { SessionRecord } from "../http/admin/SessionResource.ts"
import { get, makeIdempotencyKey, refusedRoles, unauthorizedResponses, write } from "./api/ApiClient.ts"
import { ApiError } from "./api/ApiError.ts"
import { asApiError } from "./api/useResource.ts"
import { makeStore, useStore } from "./Store.ts"

export type Session = typeof SessionRecord.Encoded
type Role = Session["operator"]["role"]

type State =
  | { readonly status: "loading" }
  | { readonly status: "signed out"; readonly error?: ApiError }
  | { readonly status: "signed in"; readonly session: Session }

const state = makeStore<State>({ status: "loading" })

export const useSessionState = (): State => useStore(state)

const useSession = (): Session | undefined => {
  const current = useSessionState()
  return current.status === "signed in" ? current.session : undefined
}

/** Returns the organization of the signed-in member, or undefined for an operator of the gateway. */
export const useMembership = (): Session["organization"] => useSession()?.organization

export const useOperatorId = (): string | undefined => useSession()?.operator.id

/** Returns the minimum and maximum of one payment in USD, or null if payments are not set up. */
export const usePaymentLimits = (): Session["payments"] => useSession()?.payments ?? null

/** Returns the base URL of the API for customers: below `PUBLIC_URL` if it is set, otherwise beside this page. */
export const useBaseUrl = (): string => {
  const publicUrl = useSession()?.public_url ?? null
  return publicUrl === null ? new URL("v1", document.baseURI).href : `${publicUrl}/v1`
}

const ranks: Readonly<Record<Role, number>> = { read: 0, write: 1, owner: 2 }

/** Returns whether the operator has at least this role. */
export const useHasRole = (role: Role): boolean => {
  const session = useSession()
  return session !== undefined && ranks[session.operator.role] >= ranks[role]
}

/** Returns whether the item is hidden: it is internal and the user is a member. */
export const useIsHidden = (isInternal = false): boolean => useMembership() !== undefined && isInternal

/** Returns all items, without the internal ones if the user is a member. */
export const useVisible = <A extends { readonly isInternal?: boolean }>(all: ReadonlyArray<A>): ReadonlyArray<A> =>
  useIsHidden(true) ? all.filter(({ isInternal }) => !isInternal) : all

/** Calls back whenever the user signs out, to remove what must not outlive the session. */
export const onSignedOut = (callback: () => void): void =>
  void state.subscribe(({ status }) => status === "signed out" && callback())

const setSignedIn = (session: Session) => state.set({ status: "signed in", session })
const setSignedOut = (error: unknown) => state.set({ status: "signed out", error: asApiError(error) })

export const signIn = (credential: { readonly token: string } | { readonly link: string }): Promise<void> =>
  write<Session>("POST", "/session", credential, makeIdempotencyKey()).then(setSignedIn, setSignedOut)

export const signOut = async (): Promise<void> => {
  await write("DELETE", "/session", undefined, makeIdempotencyKey()).catch(() => undefined)
  state.set({ status: "signed out" })
}

const readSession = () => get<Session>("/session", {}, new AbortController().signal)

/** Signs in with the one-time link of the address, which it removes first, or else resumes the session of the cookie. */
export const resumeSession = async (): Promise<void> => {
  const [, link] = /^#link=(.+)$/.exec(location.hash) ?? []
  unauthorizedResponses.subscribe(() => {
    if (state.get().status === "signed in") state.set({ status: "signed out" })
  })
  refusedRoles.subscribe(() => {
    if (state.get().status === "signed in") void readSession().then(setSignedIn, () => undefined)
  })
  if (link !== undefined) {
    location.replace("#/")
    return signIn({ link })
  }
  return readSession().then(setSignedIn, (error: unknown) => {
    if (error instanceof ApiError && error.status === 401) state.set({ status: "signed out" })
    else setSignedOut(error)
  })
}
