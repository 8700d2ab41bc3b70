import { usePolling } from "../../api/usePolling.ts"
import { useResource } from "../../api/useResource.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Fact, Facts } from "../../parts/Facts.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Time } from "../../parts/Time.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { Usd } from "../../parts/Usd.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import { link } from "../../Route.ts"
import { Attempts } from "./Attempts.tsx"
import { isOver, statusOf } from "./status.ts"
import type { VideoRecord } from "./VideoRecord.ts"

const everySeconds = 3

const steps: Readonly<Record<string, string>> = {
  submit: "waits for a route",
  submitting: "is being submitted",
  rendering: "renders at the provider",
  over: "over"
}

const Money = ({ video: { charge_usd, cost_usd, hold_id, org, price_usd } }: { readonly video: VideoRecord }) => (
  <Facts>
    <Fact name="Price">
      <Usd amount={price_usd} />
    </Fact>
    <Fact name="Charge">
      <Usd amount={charge_usd} />
    </Fact>
    <Fact name="Provider's cost">
      <Usd amount={cost_usd} />
    </Fact>
    {charge_usd !== null && cost_usd !== null && (
      <Fact name="Margin">
        <Usd amount={Number((charge_usd - cost_usd).toFixed(9))} />
      </Fact>
    )}
    <Fact name="Hold">
      <a href={link(["ledger"], { organization: org, hold: hold_id })}>
        <code>{hold_id}</code>
      </a>
    </Fact>
  </Facts>
)

const Progress = ({ video }: { readonly video: VideoRecord }) => (
  <Facts>
    <Fact name="Step">{steps[video.step] ?? video.step}</Fact>
    <Fact name="Progress">{`${video.progress} %`}</Fact>
    <Fact name="Created">
      <Time at={video.at} />
    </Fact>
    <Fact name="Finished">
      <Time at={video.completed_at} />
    </Fact>
    <Fact name="Deadline">
      <Time at={video.deadline} />
    </Fact>
    <Fact name="Looked at again">
      <Time at={video.next_at} />
    </Fact>
    <Fact name="An instance works on it until">
      <Time at={video.lease_until} />
    </Fact>
    <Fact name="Polls">{video.polls}</Fact>
    <Fact name="Polls in doubt">{video.doubts}</Fact>
    <Fact name="Downloads">{video.downloads}</Fact>
  </Facts>
)

const Details = ({ video }: { readonly video: VideoRecord }) => (
  <Facts>
    <Fact name="Organization">
      <a href={link(["organizations", video.org])}>{video.org_name ?? video.org}</a>
    </Fact>
    <Fact name="Key">
      <code>{video.key_id}</code>
    </Fact>
    <Fact name="Request">
      <a href={link(["requests", video.request_id])}>
        <code>{video.request_id}</code>
      </a>
    </Fact>
    <Fact name="Model">
      <code>{video.model}</code>
    </Fact>
    <Fact name="Length">{`${video.seconds} s`}</Fact>
    <Fact name="Route">{video.route && <code>{video.route}</code>}</Fact>
    <Fact name="Provider's job">{video.handle && <code>{video.handle}</code>}</Fact>
    <Fact name="Failed before on">{video.tried.length === 0 ? null : <code>{video.tried.join(", ")}</code>}</Fact>
    <Fact name="Media">{video.media && <code>{video.media}</code>}</Fact>
    {video.deleted_at !== null && (
      <Fact name="Deleted by its customer">
        <Time at={video.deleted_at} />
      </Fact>
    )}
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
        method="POST"
        path={`${path}/retry`}
        onDone={() => {
          toast("An instance looks at it next.")
          onDone()
        }}
      >
        <p>An instance asks the provider, or tries the next route, instead of waiting for the next time.</p>
      </WriteButton>
      <WriteButton<VideoRecord>
        label="Cancel"
        title="Cancel this video?"
        action="Cancel the video"
        isDangerous
        method="POST"
        path={`${path}/cancel`}
        onDone={() => {
          toast("The video has failed, and its hold was given back.")
          onDone()
        }}
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
      lead={status && <Badge tone={status.tone}>{status.text}</Badge>}
      actions={video && !isOver(video) && <Actions video={video} onDone={found.refresh} />}
    >
      <Loaded resource={found}>
        {(shown) => (
          <>
            {shown.error && (
              <p class="error-box">
                {shown.error.code}
                {shown.error.message && `: ${shown.error.message}`}
              </p>
            )}
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
            <Section title="Attempts">
              <Attempts video={shown} />
            </Section>
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
