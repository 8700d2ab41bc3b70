import { useEffect, useRef } from "preact/hooks"
import { pluralize } from "../../../domain/Wording.ts"
import { type ApiError, lateErrorOf } from "../../api/ApiError.ts"
import { type ChatChunk, callGateway, type ListedModel, playgroundKey, readChunks } from "../../api/GatewayClient.ts"
import { asApiError } from "../../api/useResource.ts"
import { type ApiRequest, paths } from "../../format/Snippets.ts"
import { ErrorBox } from "../../parts/Feedback.tsx"
import { Badge, shorten, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { onSignedOut, usePaymentLimits } from "../../SignedIn.ts"
import { makeStore } from "../../Store.ts"

interface ChatMessage {
  readonly role: "system" | "user" | "assistant"
  readonly content: unknown
  readonly reasoning_content?: string
}

interface VideoJob {
  readonly id: string
  readonly status: "queued" | "in_progress" | "completed" | "failed"
  readonly progress: number
  readonly url?: string
  readonly charge_usd?: number
}

/** A request of the playground and its result. */
export interface SentRequest {
  readonly id: number
  readonly request: ApiRequest
  readonly prompt: string
  readonly state: "running" | "done" | "stopped" | "failed"
  readonly text: string
  readonly reasoning: string
  readonly usage?: NonNullable<ChatChunk["usage"]>
  readonly chargeUsd?: number
  readonly requestId?: string | null
  readonly isSandbox?: boolean
  /** Addresses of pictures. */
  readonly pictures?: ReadonlyArray<string>
  readonly video?: VideoJob
  readonly error?: ApiError
}

/** The fields that the user has filled. Parameters are texts by field name. */
export interface Draft {
  readonly prompt: string
  readonly system: string
  readonly params: Readonly<Record<string, string>>
}

type Param = ListedModel["params"][number]

/** Returns the fields to show: those of the model, and an image for a chat model that sees images. */
export const paramsOf = ({ capabilities, params, surface }: ListedModel): ReadonlyArray<Param> =>
  surface === "chat" && capabilities.includes("vision") ? [...params, { key: "image", type: "image" }] : params

const toValue = ({ key, type }: Param, text: string): unknown => {
  if (type === "boolean") return text === "true"
  return type === "slider" || type === "number" || key === "seconds" ? Number(text) : text
}

/** Returns the messages of earlier chats, without those that failed. */
const historyOf = (sent: ReadonlyArray<SentRequest>): ReadonlyArray<ChatMessage> =>
  sent.flatMap(({ reasoning, request: { body, surface }, state, text }): ReadonlyArray<ChatMessage> => {
    const messages = body["messages"]
    if (surface !== "chat" || state === "failed" || text === "" || !Array.isArray(messages)) return []
    const answer = {
      role: "assistant",
      content: text,
      ...(reasoning !== "" && { reasoning_content: reasoning })
    } as const
    return [messages.at(-1), answer]
  })

const messageOf = (prompt: string, image: unknown): ChatMessage => ({
  role: "user",
  content:
    image === undefined
      ? prompt
      : [
          { type: "text", text: prompt },
          { type: "image_url", image_url: { url: image } }
        ]
})

/** Returns the request of a draft, with only the fields that the model accepts. Chats continue the earlier ones. */
export const requestOf = (
  model: ListedModel,
  { params, prompt, system }: Draft,
  sent: ReadonlyArray<SentRequest>
): ApiRequest => {
  const { image, ...values } = Object.fromEntries(
    paramsOf(model).flatMap((param) => {
      const text = params[param.key] ?? ""
      return text === "" ? [] : [[param.key, toValue(param, text)]]
    })
  )
  const { id, surface } = model
  if (surface !== "chat") {
    return { surface, body: { model: id, prompt, ...(image !== undefined && { image }), ...values } }
  }
  const messages = [
    ...(system.trim() === "" ? [] : [{ role: "system", content: system }]),
    ...historyOf(sent),
    messageOf(prompt, image)
  ]
  const answer = { stream: true, stream_options: { include_usage: true }, usage: { include: true } }
  return { surface, body: { model: id, messages, ...values, ...answer } }
}

/** The requests of this page, oldest first. */
export const sentRequests = makeStore<ReadonlyArray<SentRequest>>([])

/** Stops the request that is running, if there is one. */
export const runningRequest = makeStore<AbortController | undefined>(undefined)

export const clearSentRequests = () => {
  runningRequest.get()?.abort()
  sentRequests.set([])
}
onSignedOut(clearSentRequests)

type Update = (change: Partial<SentRequest>) => void

const readChat = (response: Response, update: Update) => {
  let [text, reasoning] = ["", ""]
  return readChunks(response, ({ choices = [], usage }) => {
    const { content, reasoning_content } = choices[0]?.delta ?? {}
    text += content ?? ""
    reasoning += reasoning_content ?? ""
    update({ text, reasoning, ...(usage && { usage, ...(usage.cost !== undefined && { chargeUsd: usage.cost }) }) })
  })
}

interface Picture {
  readonly url?: string
  readonly b64_json?: string
}

const readImage = async (response: Response, update: Update) => {
  const { data }: { readonly data: ReadonlyArray<Picture> } = await response.json()
  const charge = response.headers.get("x-gateway-charge-usd")
  update({
    pictures: data.map(({ b64_json, url }) => url ?? `data:image/png;base64,${b64_json}`),
    ...(charge !== null && { chargeUsd: Number(charge) })
  })
}

const pollMillis = 2000

/** The statuses of a poll that would fail again: the key does not work any more, or the video is gone. */
const finalStatuses: ReadonlySet<number> = new Set([401, 403, 404])

/** Polls a video until it finishes, or its request or the key is cleared. */
const pollVideo = async (apiKey: string, first: VideoJob, isShown: () => boolean, update: Update) => {
  let video = first
  while (isShown()) {
    update({ video })
    if (video.status === "failed") return update({ state: "failed", error: lateErrorOf(video) })
    if (video.status === "completed") {
      return update({ state: "done", ...(video.charge_usd !== undefined && { chargeUsd: video.charge_usd }) })
    }
    await new Promise((resolve) => setTimeout(resolve, pollMillis))
    if (playgroundKey.get() !== apiKey) return update({ state: "stopped" })
    try {
      video = await (await callGateway(`/videos/${encodeURIComponent(video.id)}`, apiKey)).json()
    } catch (cause) {
      // The video goes on, whatever happens to a poll.
      const error = asApiError(cause)
      if (finalStatuses.has(error.status)) return update({ state: "failed", error })
    }
  }
}

/** Sends a request and records its result as it arrives. Returns whether it was answered. */
export const send = async (apiKey: string, request: ApiRequest, prompt: string): Promise<boolean> => {
  const id = (sentRequests.get().at(-1)?.id ?? 0) + 1
  const isShown = () => sentRequests.get().some((sent) => sent.id === id)
  const update: Update = (change) =>
    sentRequests.set(sentRequests.get().map((sent) => (sent.id === id ? { ...sent, ...change } : sent)))
  const controller = new AbortController()
  runningRequest.set(controller)
  sentRequests.set([...sentRequests.get(), { id, request, prompt, state: "running", text: "", reasoning: "" }])
  try {
    const response = await callGateway(paths[request.surface], apiKey, {
      body: request.body,
      signal: controller.signal
    })
    update({
      requestId: response.headers.get("x-request-id"),
      isSandbox: response.headers.has("x-gateway-sandbox")
    })
    if (request.surface === "video") {
      void pollVideo(apiKey, await response.json(), isShown, update)
      return true
    }
    await (request.surface === "chat" ? readChat : readImage)(response, update)
    update({ state: "done" })
    return true
  } catch (cause) {
    const error = asApiError(cause)
    if (controller.signal.aborted) update({ state: "stopped" })
    else update({ state: "failed", error, ...(error.requestId !== null && { requestId: error.requestId }) })
    return controller.signal.aborted
  } finally {
    if (runningRequest.get() === controller) runningRequest.set(undefined)
  }
}

const Pictures = ({ pictures = [], prompt }: SentRequest) => (
  <>
    {pictures.map((address) => (
      <img key={address} src={address} alt={prompt} />
    ))}
  </>
)

const Video = ({ video }: SentRequest) => {
  if (video === undefined) return null
  return (
    <>
      {video.url === undefined ? (
        <p role="status">
          Video {video.status.replace("_", " ")}
          {video.status === "failed" && ", not charged"}
          {video.status === "in_progress" && video.progress > 0 && `, ${video.progress} %`}
        </p>
      ) : (
        <video controls src={video.url} />
      )}
    </>
  )
}

/** The usage and the charge of a request, with links to its records. */
const Footer = ({ chargeUsd, isSandbox, requestId, state, usage, video }: SentRequest) => (
  <p class="soft sent-foot">
    {isSandbox && <Badge tone="warn">sandbox</Badge>}
    {state === "stopped" && <span>Stopped. The request's page shows the charge.</span>}
    {usage && (
      <span>
        {pluralize(usage.prompt_tokens, "prompt token")}, {pluralize(usage.completion_tokens, "completion token")}
      </span>
    )}
    {chargeUsd !== undefined && (
      <span>
        Charged <Usd amount={chargeUsd} />
      </span>
    )}
    {video && <a href={link(["videos", video.id])}>Video {shorten(video.id, 14)}</a>}
    {requestId && <a href={link(["requests", requestId])}>Request {shorten(requestId, 14)}</a>}
  </p>
)

const Sent = ({ sent }: { readonly sent: SentRequest }) => {
  const { error, prompt, reasoning, request, state, text } = sent
  const canPay = usePaymentLimits() !== null
  return (
    <article>
      <p class="sent-prompt">
        <bdi>{prompt}</bdi>
      </p>
      <p class="soft">
        <small>{String(request.body["model"])}</small>
      </p>
      {reasoning !== "" && (
        <details>
          <summary>Reasoning</summary>
          <p class="sent-text soft">
            <bdi>{reasoning}</bdi>
          </p>
        </details>
      )}
      {text !== "" && (
        <p class="sent-text">
          <bdi>{text}</bdi>
        </p>
      )}
      {state === "running" && text === "" && sent.video === undefined && <p class="soft">Waiting…</p>}
      <Pictures {...sent} />
      <Video {...sent} />
      {error && <ErrorBox error={error} />}
      {error?.code === "insufficient_quota" && canPay && <a href={link(["payments"])}>Add credits</a>}
      <Footer {...sent} />
    </article>
  )
}

/** The requests of the playground with their results, oldest first. */
export const SentRequestList = ({
  isRunning,
  sent
}: {
  readonly isRunning: boolean
  readonly sent: ReadonlyArray<SentRequest>
}) => {
  const list = useRef<HTMLDivElement>(null)
  const progress = `${sent.length} ${isRunning} ${sent.at(-1)?.video?.status}`
  const lastProgress = useRef(progress)
  useEffect(() => {
    if (lastProgress.current === progress) return
    lastProgress.current = progress
    list.current?.lastElementChild?.scrollIntoView({ block: "nearest" })
  }, [progress])
  return (
    <div ref={list} class="sent" role="log" aria-label="Requests and results" aria-busy={isRunning}>
      {sent.map((one) => (
        <Sent key={one.id} sent={one} />
      ))}
    </div>
  )
}
