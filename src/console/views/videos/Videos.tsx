import type { NamedVideo } from "../../../http/admin/Videos.ts"
import { usePolling, useResource } from "../../api/useResource.ts"
import { formatMarginShare, subtractUsd } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Moment.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { Loaded } from "../../parts/Feedback.tsx"
import type { Filter } from "../../parts/FilterBar.tsx"
import { ListPage } from "../../parts/ListPage.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Status, Tone } from "../../parts/Status.ts"
import { type Column, organizationColumn, Table, timeColumn } from "../../parts/Table.tsx"
import { Badge, Charge, Fact, Facts, Internal, Long, RefundBadge, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { outcomeOf } from "../requests/Outcome.ts"
import { OutcomeBadge } from "../requests/TimelineList.tsx"

/** Amounts in USD, moments in Unix seconds. */
export type VideoRecord = typeof NamedVideo.Encoded

const tones: Readonly<Record<VideoRecord["status"], Tone>> = {
  queued: "soft",
  in_progress: "soft",
  completed: "good",
  failed: "bad"
}

const isOver = ({ status }: VideoRecord): boolean => status === "completed" || status === "failed"

const isLate = (video: VideoRecord): boolean => !isOver(video) && video.deadline < Date.now() / 1000

export const statusOf = (video: VideoRecord): Status =>
  isLate(video)
    ? { text: "past its deadline", tone: "bad" }
    : { text: video.status.replace("_", " "), tone: tones[video.status] }

/** Oldest first: how each submit ended. */
const Attempts = ({ video: { attempts } }: { readonly video: VideoRecord }) => (
  <Table
    label="Attempts"
    empty="No submit has ended yet."
    rows={attempts.map((attempt, index) => ({ ...attempt, number: index + 1 }))}
    rowKey={({ number }) => number}
    columns={[
      { title: "Route", kind: "code", value: ({ route }) => route },
      { title: "Outcome", kind: "custom", value: (attempt) => <OutcomeBadge of={attempt} /> },
      { title: "What it said", kind: "text", value: ({ detail }) => detail },
      { title: "Its request id", kind: "code", value: ({ provider_request_id }) => provider_request_id },
      { title: "Took", kind: "amount", value: ({ ms }) => formatMillis(ms) },
      { title: "Cost", kind: "usd", value: ({ cost_usd }) => cost_usd }
    ]}
  />
)

type Failed = Pick<VideoRecord, "error"> & Partial<Pick<VideoRecord, "attempts">>

/** Shows why a video failed and at which attempt, if it failed. */
export const VideoFailure = ({ video: { attempts, error } }: { readonly video: Failed }) => {
  if (error === null) return null
  const { attempt, code, message, outcome } = error
  const failed = attempt === null ? undefined : attempts?.[attempt - 1]
  return (
    <div class="error-box">
      {code}
      {message && `: ${message}`}
      {attempt !== null && (
        <p>
          Attempt {attempt}: {outcomeOf(outcome ?? "").text}
          {failed && (
            <Internal>
              {() => (
                <>
                  {" "}
                  at <code>{failed.route}</code> {failed.detail && <Long text={failed.detail} />}
                </>
              )}
            </Internal>
          )}
        </p>
      )}
    </div>
  )
}

const everySeconds = 3

const steps: Readonly<Record<string, string>> = {
  submit: "waits for a route",
  submitting: "is being submitted",
  rendering: "renders at the provider",
  over: "over"
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

const Money = ({
  video: { charge_usd, cost_usd, hold_id, org, price_usd, refunded_usd }
}: {
  readonly video: VideoRecord
}) => (
  <Facts>
    <Fact name="Price" usd={price_usd} />
    <Fact name="Charge" usd={charge_usd} />
    {charge_usd !== null && refunded_usd > 0 && (
      <>
        <Fact name="Refunded" usd={-refunded_usd} />
        <Fact name="Paid" usd={subtractUsd(charge_usd, refunded_usd)} />
      </>
    )}
    <Fact isInternal name="Provider's cost" usd={cost_usd} />
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

const Progress = ({ video }: { readonly video: VideoRecord }) => (
  <Facts>
    <Fact isInternal name="Step">
      {steps[video.step] ?? video.step}
    </Fact>
    <Fact name="Progress">{`${video.progress} %`}</Fact>
    <Fact name="Created" at={video.at} />
    <Fact name="Finished" at={video.completed_at} />
    <Fact name="Deadline" at={video.deadline} />
    <Fact isInternal name="Looked at again" at={video.next_at} />
    <Fact isInternal name="An instance works on it until" at={video.lease_until} />
    <Fact isInternal name="Polls" children={video.polls} />
    <Fact isInternal name="Submits in doubt" children={video.doubts} />
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
    <Fact isInternal name="Provider's job" code={video.handle} />
    <Internal>{() => <Fact name="Routes asked" code={video.tried.join(", ")} />}</Internal>
    <Fact isInternal name="Media" code={video.media} />
    {video.deleted_at !== null && <Fact name="Deleted by its customer" at={video.deleted_at} />}
  </Facts>
)

const Actions = ({ onDone, video }: { readonly video: VideoRecord; readonly onDone: () => void }) => {
  const path = `/videos/${encodeURIComponent(video.id)}`
  return (
    <>
      <WriteButton<VideoRecord>
        label="Look at it now"
        title="Look at this video now?"
        action="Look now"
        path={`${path}/retry`}
        done="An instance looks at it next."
        onDone={onDone}
      >
        <p>An instance asks the provider, or tries the next route, instead of waiting for the next time.</p>
      </WriteButton>
      <WriteButton<VideoRecord>
        label="Cancel"
        title="Cancel this video?"
        action="Cancel the video"
        isDangerous
        path={`${path}/cancel`}
        done="The video has failed, and its hold was given back."
        onDone={onDone}
      >
        <p>
          It fails for its customer, its hold of <Usd amount={video.price_usd} /> is given back, and nothing is charged.
          The provider may have rendered it already, at your cost.
        </p>
      </WriteButton>
    </>
  )
}

export const Video = ({ id }: { readonly id: string }) => {
  const found = useResource<VideoRecord>(`/videos/${encodeURIComponent(id)}`)
  const video = found.data
  usePolling(video === undefined || isOver(video) ? undefined : everySeconds, found.refresh)
  const status = video && statusOf(video)
  return (
    <Page
      title={video?.id ?? "Video"}
      lead={
        status && (
          <>
            <Badge tone={status.tone}>{status.text}</Badge>{" "}
            <RefundBadge charged={video.charge_usd ?? 0} refunded={video.refunded_usd} />
          </>
        )
      }
      actions={video && !isOver(video) && <Internal>{() => <Actions video={video} onDone={found.refresh} />}</Internal>}
    >
      <Loaded resource={found}>
        {(shown) => (
          <>
            <VideoFailure video={shown} />
            <div class="halves">
              <Section title="Progress">
                <Progress video={shown} />
              </Section>
              <Section title="Money">
                <Money video={shown} />
              </Section>
            </div>
            <Section title="Attempts" isInternal>
              <Attempts video={shown} />
            </Section>
            <Section title="Details">
              <Details video={shown} />
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
  { kind: "text", name: "organization", label: "Organization", placeholder: "id or name", isInternal: true },
  { kind: "text", name: "model", label: "Model" }
]

const columns: ReadonlyArray<Column<VideoRecord>> = [
  timeColumn("videos", ({ at }) => at),
  { title: "Status", kind: "status", value: statusOf },
  organizationColumn,
  { title: "Model", kind: "code", value: ({ model }) => model },
  { title: "Length", kind: "amount", value: ({ seconds }) => `${seconds} s` },
  { title: "Route", kind: "code", isInternal: true, value: ({ route }) => route },
  { title: "Routes asked", kind: "number", isInternal: true, value: ({ tried }) => tried.length || null },
  {
    title: "Charge",
    kind: "custom",
    isAmount: true,
    value: ({ charge_usd, refunded_usd }) =>
      charge_usd === null ? null : <Charge charged={charge_usd} refunded={refunded_usd} />
  },
  { title: "Finished", kind: "time", value: ({ completed_at }) => completed_at }
]

export const Videos = () => (
  <ListPage title="Videos" path="/videos" filters={filters} hasRefresh empty="No video matches." columns={columns} />
)
