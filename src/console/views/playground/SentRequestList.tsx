import { useEffect, useRef } from "preact/hooks"
import { pluralize } from "../../../domain/Wording.ts"
import { ErrorBox } from "../../parts/Feedback.tsx"
import { Badge, shorten, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { usePaymentLimits } from "../../SignedIn.ts"
import type { SentRequest } from "./SentRequests.ts"

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
