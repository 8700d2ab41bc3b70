import type { NamedVideo } from "../../../http/admin/VideoResource.ts"
import { usePolling, useResource } from "../../api/useResource.ts"
import { formatMarginShare, subtractUsd } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Dates.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { Loaded } from "../../parts/Feedback.tsx"
import type { Filter } from "../../parts/FilterBar.tsx"
import { ListPage, Page, Section } from "../../parts/Page.tsx"
import type { Status } from "../../parts/Status.ts"
import { type Column, organizationColumn, Table, timeColumn } from "../../parts/Table.tsx"
import { Badge, Fact, Facts, Internal, Long, RefundBadge, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { type Attempt, outcomeOf, shortRoute, videoStatusOf } from "../requests/RequestRows.ts"

/** Amounts in USD, times in Unix seconds. */
export type VideoRecord = typeof NamedVideo.Encoded

const isFinished = ({ status }: VideoRecord): boolean => status === "completed" || status === "failed"

const isLate = (video: VideoRecord): boolean => !isFinished(video) && video.deadline < Date.now() / 1000

export const statusOf = (video: VideoRecord): Status =>
  isLate(video) ? { text: "past deadline", tone: "bad" } : videoStatusOf(video.status)

export const OutcomeBadge = ({
  attempt: { outcome, status }
}: {
  readonly attempt: Pick<Attempt, "outcome" | "status">
}) => {
  const { text, tone } = outcomeOf(outcome)
  return (
    <Badge tone={tone}>
      {text}
      {status !== undefined && ` ${status}`}
    </Badge>
  )
}

/** Submissions and their outcomes, oldest first. */
const Attempts = ({ video }: { readonly video: VideoRecord }) => (
  <Table
    label="Attempts"
    empty="No attempts have finished."
    rows={video.attempts.map((attempt, index) => ({ ...attempt, number: index + 1 }))}
    rowKey={({ number }) => number}
    columns={[
      { title: "Attempt", kind: "number", narrow: "detail", value: ({ number }) => number },
      { title: "Route", kind: "code", narrow: "main", value: ({ route }) => route },
      { title: "Outcome", kind: "custom", value: (attempt) => <OutcomeBadge attempt={attempt} /> },
      { title: "Details", kind: "text", value: ({ detail }) => detail },
      { title: "Provider request ID", kind: "code", value: ({ provider_request_id }) => provider_request_id },
      { title: "Duration", kind: "amount", value: ({ ms }) => formatMillis(ms) },
      {
        title: "Cost",
        kind: "usd",
        none: "unknown",
        // The record of the video has the cost of the successful attempt.
        value: ({ cost_usd, outcome }) => cost_usd ?? (outcome === "ok" ? video.cost_usd : null)
      }
    ]}
  />
)

type FailedVideo = Pick<VideoRecord, "error"> & Partial<Pick<VideoRecord, "attempts">>

/** The error of a failed video, and the attempt that failed. */
export const VideoFailure = ({ video: { attempts, error } }: { readonly video: FailedVideo }) => {
  if (error === null) return null
  const { attempt, code, message, outcome } = error
  const failed = attempt === null ? undefined : attempts?.[attempt - 1]
  return (
    <div class="error-box lines">
      <p>
        {code}
        {message && `: ${message}`}
      </p>
      {attempt !== null && (
        <p>
          Attempt {attempt} of {Math.max(attempt, attempts?.length ?? 0)}: {outcomeOf(outcome ?? "").text}
          {failed && (
            <Internal>
              {() => (
                <>
                  {" "}
                  on route <code>{failed.route}</code>
                  {failed.detail && (
                    <>
                      : <Long text={failed.detail} />
                    </>
                  )}
                </>
              )}
            </Internal>
          )}
        </p>
      )}
    </div>
  )
}

/** A browser opens a file of another origin in the new tab instead of downloading it. */
const Player = ({ url }: { readonly url: string }) => (
  <div class="player">
    <video controls preload="metadata" src={url} />
    <a href={url} download target="_blank" rel="noreferrer">
      Download
    </a>
  </div>
)

const everySeconds = 3

const steps: Readonly<Record<string, string>> = {
  submit: "waiting to be submitted",
  submitting: "submitting",
  rendering: "rendering at the provider",
  over: "finished"
}

const Margin = ({ cost, paid }: { readonly cost: number; readonly paid: number }) => {
  const margin = subtractUsd(paid, cost)
  const share = formatMarginShare(margin, cost)
  return (
    <Fact name="Margin">
      <Usd amount={margin} />
      {share && <span class="soft"> {share}</span>}
    </Fact>
  )
}

const Billing = ({ video }: { readonly video: VideoRecord }) => {
  const { charge_usd, cost_usd, hold_id, org, price_usd, refunded_usd } = video
  return (
    <Facts>
      <Fact name="Price" usd={price_usd} />
      <Fact name="Charge" usd={charge_usd} none={isFinished(video) ? "not charged" : "not charged yet"} />
      {charge_usd !== null && refunded_usd > 0 && (
        <>
          <Fact name="Refunded" usd={-refunded_usd} />
          <Fact name="Net charge" usd={subtractUsd(charge_usd, refunded_usd)} />
        </>
      )}
      <Fact
        isInternal
        name="Provider cost"
        usd={cost_usd}
        none={isFinished(video) ? "unknown" : "unknown until it ends"}
      />
      <Internal>
        {() =>
          charge_usd !== null &&
          cost_usd !== null && <Margin paid={subtractUsd(charge_usd, refunded_usd)} cost={cost_usd} />
        }
      </Internal>
      <Fact isInternal name="Hold">
        <a href={link(["ledger"], { organization: org, hold: hold_id })}>
          <code>{hold_id}</code>
        </a>
      </Fact>
    </Facts>
  )
}

const Progress = ({ video }: { readonly video: VideoRecord }) => (
  <Facts>
    <Fact isInternal name="Step">
      {steps[video.step] ?? video.step}
    </Fact>
    {!isFinished(video) && <Fact name="Progress">{`${video.progress} %`}</Fact>}
    <Fact name="Created" at={video.at} />
    <Fact name="Finished" at={video.completed_at} />
    <Fact name="Deadline" at={video.deadline} />
    {!isFinished(video) && (
      <>
        <Fact isInternal name="Next poll" at={video.next_at} />
        <Fact isInternal name="Leased until" at={video.lease_until} />
      </>
    )}
    <Fact isInternal name="Polls" children={video.polls} />
    <Fact isInternal name="Submissions with unknown outcome" children={video.doubts} />
    <Fact isInternal name="Last error" children={video.last_error && <Long text={video.last_error} />} />
    <Fact isInternal name="Failed downloads" children={video.downloads} />
  </Facts>
)

const Details = ({ video }: { readonly video: VideoRecord }) => (
  <Facts>
    <Fact isInternal name="Organization">
      <a href={link(["organizations", video.org])}>{video.org_name ?? video.org}</a>
    </Fact>
    <Fact name="Key" code={video.key_id} />
    <Fact name="Request">
      <a href={link(["requests", video.request_id])}>
        <code>{video.request_id}</code>
      </a>
    </Fact>
    <Fact name="Model" code={video.model} />
    <Fact name="Length">{`${video.seconds} s`}</Fact>
    <Fact isInternal name="Route" code={video.route} />
    <Fact isInternal name="Provider job ID" code={video.handle} />
    <Internal>{() => <Fact name="Attempted routes" code={video.tried.join(", ")} />}</Internal>
    <Fact isInternal name="Media object" code={video.media} />
    {video.deleted_at !== null && <Fact name="Deleted by customer" at={video.deleted_at} />}
  </Facts>
)

const Actions = ({ onDone, video }: { readonly video: VideoRecord; readonly onDone: () => void }) => {
  const path = `/videos/${encodeURIComponent(video.id)}`
  return (
    <>
      <WriteButton<VideoRecord>
        label="Poll now"
        title="Poll this video now?"
        path={`${path}/retry`}
        done="An instance will process the video shortly."
        onDone={onDone}
      >
        <p>An instance polls the provider, or tries the next route, without waiting for the scheduled time.</p>
      </WriteButton>
      <WriteButton<VideoRecord>
        label="Cancel"
        title="Cancel this video?"
        action="Cancel the video"
        dismiss="Keep it"
        isDangerous
        path={`${path}/cancel`}
        done="The video was cancelled and its hold released."
        onDone={onDone}
      >
        <p>
          The video fails, its hold of <Usd amount={video.price_usd} /> is released, and the customer is not charged.
          The provider may have rendered it already, at your cost.
        </p>
      </WriteButton>
    </>
  )
}

export const Video = ({ id }: { readonly id: string }) => {
  const resource = useResource<VideoRecord>(`/videos/${encodeURIComponent(id)}`)
  const video = resource.data
  usePolling(video === undefined || isFinished(video) ? undefined : everySeconds, resource.refresh)
  const status = video && statusOf(video)
  return (
    <Page
      title="Video"
      recordId={video?.id}
      lead={
        status && (
          <>
            <Badge tone={status.tone}>{status.text}</Badge>{" "}
            <RefundBadge charge={video.charge_usd ?? 0} refund={video.refunded_usd} />
          </>
        )
      }
      actions={
        video && !isFinished(video) && <Internal>{() => <Actions video={video} onDone={resource.refresh} />}</Internal>
      }
    >
      <Loaded resource={resource}>
        {(video) => (
          <>
            <VideoFailure video={video} />
            {video.url !== null && <Player url={video.url} />}
            <div class="halves">
              <Section title="Progress">
                <Progress video={video} />
              </Section>
              <Section title="Billing">
                <Billing video={video} />
              </Section>
            </div>
            <Section title="Attempts" isInternal>
              <Attempts video={video} />
            </Section>
            <Section title="Details">
              <Details video={video} />
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  )
}

const filters: ReadonlyArray<Filter> = [
  { kind: "range" },
  {
    kind: "select",
    name: "status",
    label: "Status",
    options: ["queued", ["in_progress", "in progress"], "completed", "failed"]
  },
  { kind: "text", name: "organization", label: "Organization", placeholder: "Name or ID", isInternal: true },
  { kind: "text", name: "model", label: "Model" }
]

const columns: ReadonlyArray<Column<VideoRecord>> = [
  timeColumn("videos", ({ at }) => at),
  { title: "Status", kind: "status", value: statusOf },
  { ...organizationColumn, share: 28 },
  { title: "Model", kind: "code", narrow: "main", share: 46, value: ({ model }) => model },
  { title: "Length", kind: "amount", value: ({ seconds }) => `${seconds} s` },
  {
    title: "Route",
    kind: "code",
    isInternal: true,
    narrow: "hidden",
    share: 26,
    value: ({ model, route }) => route && shortRoute(route, model),
    hint: ({ route }) => route
  },
  {
    title: "Charge",
    kind: "usd",
    none: "not charged",
    value: ({ charge_usd, refunded_usd }) => (charge_usd === null ? null : { charge: charge_usd, refund: refunded_usd })
  },
  { title: "Finished", kind: "time", narrow: "hidden", value: ({ completed_at }) => completed_at }
]

export const Videos = () => (
  <ListPage title="Videos" path="/videos" filters={filters} hasRefresh nouns="videos" columns={columns} />
)
