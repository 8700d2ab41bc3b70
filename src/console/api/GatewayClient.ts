import { useEffect, useState } from "preact/hooks"
import { compileModelPatterns } from "../../domain/ModelPatterns.ts"
import type { Key } from "../../services/access/Key.ts"
import type { MemberModel } from "../../services/admin/ServedModels.ts"
import type { listModel } from "../../services/catalog/ModelEntry.ts"
import type { Surface } from "../format/Snippets.ts"
import { onSignedOut } from "../SignedIn.ts"
import { makeStore } from "../Store.ts"
import { forEachLine } from "./ApiClient.ts"
import { ApiError, errorOf, lateErrorOf, unreachableError } from "./ApiError.ts"
import { asApiError, useResource } from "./useResource.ts"

export type ListedModel = ReturnType<typeof listModel>

/** The secret API key of the playground. It stays in memory and is removed when the user signs out. */
export const playgroundKey = makeStore<string | undefined>(undefined)
onSignedOut(() => playgroundKey.set(undefined))

interface CallOptions {
  /** Sent as JSON. Without a body the method is GET. */
  readonly body?: unknown
  readonly signal?: AbortSignal
}

/** Calls this gateway's customer API with an API key and without the session. Fails with an ApiError, or if aborted. */
export const callGateway = async (
  path: string,
  apiKey: string,
  { body, signal }: CallOptions = {}
): Promise<Response> => {
  const response = await fetch(`v1${path}`, {
    credentials: "omit",
    headers: { authorization: `Bearer ${apiKey}`, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal })
  }).catch((error: unknown) => {
    throw signal?.aborted ? error : unreachableError()
  })
  if (!response.ok) throw await errorOf(response)
  return response
}

export interface ChatChunk {
  readonly choices?: ReadonlyArray<{
    readonly delta?: { readonly content?: string | null; readonly reasoning_content?: string | null }
  }>
  readonly usage?: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    /** In USD. */
    readonly cost?: number
  } | null
}

const eventPrefix = "data: "

/** Calls `onChunk` with each chunk of a chat's stream. Fails on an error event, and if the stream ends early. */
export const readChunks = async (response: Response, onChunk: (chunk: ChatChunk) => void): Promise<void> => {
  let isDone = false
  await forEachLine(response, (line) => {
    if (!line.startsWith(eventPrefix)) return
    const data = line.slice(eventPrefix.length).trim()
    if (data === "[DONE]") isDone = true
    else {
      const chunk = JSON.parse(data)
      if (chunk.error !== undefined) throw lateErrorOf(chunk)
      onChunk(chunk)
    }
  })
  if (!isDone) {
    throw new ApiError(200, { message: "The response ended before it was complete.", code: null, param: null })
  }
}

interface ModelList {
  readonly models?: ReadonlyArray<ListedModel>
  readonly error?: ApiError
}

/** Loads the models that a key may use. */
export const useModels = (apiKey: string): ModelList => {
  const [state, setState] = useState<ModelList & { readonly apiKey?: string }>({})
  useEffect(() => {
    const controller = new AbortController()
    const settle = (list: ModelList) => controller.signal.aborted || setState({ ...list, apiKey })
    callGateway("/models", apiKey, controller)
      .then(async (response) => settle({ models: (await response.json()).data }))
      .catch((error: unknown) => settle({ error: asApiError(error) }))
    return () => controller.abort()
  }, [apiKey])
  return state.apiKey === apiKey ? state : {}
}

/** Operators also see models that cannot be called. */
type CatalogModel = typeof MemberModel.Encoded & { readonly callable?: boolean }

/** Loads the callable models with the session. Unlike `useModels`, this does not count as a use of a key. */
export const useCallableModels = (): ReadonlyArray<CatalogModel> =>
  useResource<{ readonly data: ReadonlyArray<CatalogModel> }>("/models").data?.data.filter(
    ({ callable }) => callable !== false
  ) ?? []

const scopes: Readonly<Record<Surface, string>> = { chat: "chat", image: "images", video: "videos" }

interface Candidate {
  readonly id: string
  readonly surface: Surface
  readonly capabilities: ReadonlyArray<string>
  /** Absent in the models of the admin API. */
  readonly video?: { readonly reference_image: string } | undefined
}

type KeyModels = Pick<typeof Key.Encoded, "models" | "scopes">

/** Returns a model for a first request with a key: preferably for chat, or else without a reference image. */
export const findFirstModel = <Model extends Candidate>(
  models: ReadonlyArray<Model>,
  { models: patterns, scopes: keyScopes }: KeyModels = { models: null, scopes: null }
): Model | undefined => {
  const isAllowed = patterns === null ? () => true : compileModelPatterns(patterns)
  const usable = models.filter(({ id, surface, video }) => {
    const hasScope = keyScopes === null || keyScopes.some((scope) => scope === scopes[surface])
    return hasScope && isAllowed(id) && video?.reference_image !== "required"
  })
  return usable.find(({ surface }) => surface === "chat") ?? usable.find((model) => !takesImage(model)) ?? usable[0]
}

/** Whether the model accepts or requires a reference image. */
export const takesImage = ({ capabilities }: Pick<Candidate, "capabilities">): boolean =>
  capabilities.includes("reference_image")
