import { usePolling } from "../../api/usePolling.ts"
import { useResource } from "../../api/useResource.ts"
import { formatMarginShare } from "../../format/Margin.ts"
import { subtractUsd } from "../../format/Subtraction.ts"
import { Badge } from "../../parts/Badge.tsx"
import { RefundBadge } from "../../parts/Charge.tsx"
import { Fact, Facts } from "../../parts/Facts.tsx"
import { Internal } from "../../parts/Internal.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Long } from "../../parts/Long.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Usd } from "../../parts/Usd.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import { link } from "../../Route.ts"
import { Attempts } from "./Attempts.tsx"
import { isOver, statusOf } from "./status.ts"
import { VideoFailure } from "./VideoFailure.tsx"
import type { VideoRecord } from "./VideoRecord.ts"

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
    <Internal>
      {() => (
        <>
          <Fact name="Provider's cost" usd={cost_usd} />
          {charge_usd !== null && cost_usd !== null && (
            <Margin paid={subtractUsd(charge_usd, refunded_usd)} cost={cost_usd} />
          )}
          <Fact name="Hold">
            <a href={link(["ledger"], { organization: org, hold: hold_id })}>
              <code>{hold_id}</code>
            </a>
          </Fact>
        </>
      )}
    </Internal>
  </Facts>
)

const Progress = ({ video }: { readonly video: VideoRecord }) => (
  <Facts>
    <Internal>{() => <Fact name="Step">{steps[video.step] ?? video.step}</Fact>}</Internal>
    <Fact name="Progress">{`${video.progress} %`}</Fact>
    <Fact name="Created" at={video.at} />
    <Fact name="Finished" at={video.completed_at} />
    <Fact name="Deadline" at={video.deadline} />
    <Internal>
      {() => (
        <>
          <Fact name="Looked at again" at={video.next_at} />
          <Fact name="An instance works on it until" at={video.lease_until} />
          <Fact name="Polls">{video.polls}</Fact>
          <Fact name="Submits in doubt">{video.doubts}</Fact>
          <Fact name="Last error">{video.last_error && <Long text={video.last_error} />}</Fact>
          <Fact name="Failed downloads">{video.downloads}</Fact>
        </>
      )}
    </Internal>
  </Facts>
)

const Details = ({ video }: { readonly video: VideoRecord }) => (
  <Facts>
    <Internal>
      {() => (
        <Fact name="Organization">
          <a href={link(["organizations", video.org])}>{video.org_name ?? video.org}</a>
        </Fact>
      )}
    </Internal>
    <Fact name="Key" code={video.key_id} />
    <Fact name="Request">
      <a href={link(["requests", video.request_id])}>
        <code>{video.request_id}</code>
      </a>
    </Fact>
    <Fact name="Model" code={video.model} />
    <Fact name="Length">{`${video.seconds} s`}</Fact>
    <Internal>
      {() => (
        <>
          <Fact name="Route" code={video.route} />
          <Fact name="Provider's job" code={video.handle} />
          <Fact name="Routes asked" code={video.tried.join(", ")} />
          <Fact name="Media" code={video.media} />
        </>
      )}
    </Internal>
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
                <div class="panel">
                  <Progress video={shown} />
                </div>
              </Section>
              <Section title="Money">
                <div class="panel">
                  <Money video={shown} />
                </div>
              </Section>
            </div>
            <Internal>
              {() => (
                <Section title="Attempts">
                  <Attempts video={shown} />
                </Section>
              )}
            </Internal>
            <Section title="Details">
              <div class="panel">
                <Details video={shown} />
              </div>
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  )
}
