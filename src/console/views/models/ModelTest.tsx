import type { ModelTest } from "../../../services/admin/ModelTests.ts"
import { formatCount } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Dates.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"
import { Badge, Fact, Facts, Long } from "../../parts/Values.tsx"

/** Amounts in USD. */
export type TestResult = typeof ModelTest.Encoded

export const TestButton = ({
  model,
  onDone,
  route
}: {
  readonly model: string
  /** The only route to call. Undefined: all routes of the model. */
  readonly route?: string
  readonly onDone: (result: TestResult) => void
}) => (
  <WriteButton<TestResult>
    label="Test"
    target={route ?? model}
    isPlain={route !== undefined}
    path={`/models/${encodeURIComponent(model)}/test`}
    body={() => (route === undefined ? {} : { route })}
    onDone={onDone}
  >
    <p>
      Sends one small request to {route === undefined ? "the model" : "this route only"} and waits up to 60 seconds. You
      pay the provider for it. No organization is charged.
    </p>
  </WriteButton>
)

const tokensOf = (count: number | null) => (count === null ? null : formatCount(count))

export const TestSection = ({ result }: { readonly result: TestResult }) => (
  <Section title="Test">
    <div role="status">
      <Facts>
        <Fact name="Result">
          <Badge tone={result.ok ? "good" : "bad"}>{result.ok ? "succeeded" : "failed"}</Badge>
        </Fact>
        {result.error !== null && (
          <Fact name="Reason">
            <Long text={result.error} />
          </Fact>
        )}
        {result.ok &&
          (result.image_size === null ? (
            <Fact name="Response">{result.text ? <Long text={result.text} /> : "The response has no text."}</Fact>
          ) : (
            <Fact name="Image size">{result.image_size}</Fact>
          ))}
        <Fact name="Latency">{formatMillis(result.latency_ms)}</Fact>
        {result.cost_usd === null ? <Fact name="Cost">unknown</Fact> : <Fact name="Cost" usd={result.cost_usd} />}
        <Fact name="Prompt tokens">{tokensOf(result.prompt_tokens)}</Fact>
        <Fact name="Completion tokens">{tokensOf(result.completion_tokens)}</Fact>
        <Fact name="Route" code={result.route} />
      </Facts>
      <Table
        label="Attempts"
        empty="No attempts."
        rows={result.attempts}
        rowKey={({ ms, route }) => `${route} ${ms}`}
        columns={[
          { title: "Route", kind: "code", value: ({ route }) => route },
          { title: "Outcome", kind: "text", value: ({ outcome }) => outcome },
          { title: "Status", kind: "amount", value: ({ status }) => (status === null ? null : String(status)) },
          { title: "Duration", kind: "amount", value: ({ ms }) => formatMillis(ms) },
          { title: "Detail", kind: "text", value: ({ detail }) => detail }
        ]}
      />
    </div>
  </Section>
)
