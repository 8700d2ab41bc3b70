import { useState } from "preact/hooks"
import { useResource } from "../../api/useResource.ts"
import { Loaded } from "../../parts/Feedback.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Snippets } from "../../parts/Snippets.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { Badge, Fact, Facts } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import {
  formatUnit,
  Margins,
  needsAttention,
  RouteTable,
  TestButton,
  type TestResult,
  TestSection
} from "./ModelRoutes.tsx"
import { contextText, formatMargin, type ModelRecord, type PricedModel, saleStateOf } from "./Models.tsx"

const Overview = ({ model }: { readonly model: ModelRecord }) => {
  const { capabilities, id, reason, routes, surface } = model
  const failing = routes.filter(needsAttention).length
  return (
    <>
      {reason !== null && <p class="error-box">This model cannot be called: {reason}.</p>}
      <Facts>
        <Fact name="Endpoint type">{surface}</Fact>
        <Fact name="Context">{contextText(model)}</Fact>
        <Fact name="Capabilities">{capabilities.join(", ") || null}</Fact>
        <Fact name="Lowest margin">{formatMargin(model)}</Fact>
        <Fact name="Routes that need attention">{failing || null}</Fact>
        <Fact name="Requests">
          <a href={link(["requests"], { model: id })}>Show requests</a>
        </Fact>
      </Facts>
      {surface === "video" && (
        <p class="soft">
          Video models cannot be tested here. Create a short video with <code>POST /v1/videos</code>.
        </p>
      )}
    </>
  )
}

const everySeconds = 5

/** One model with its routes, for operators. */
export const ModelPage = ({ id }: { readonly id: string }) => {
  const resource = useResource<ModelRecord>(`/models/${encodeURIComponent(id)}`, { everySeconds })
  const [test, setTest] = useState<TestResult>()
  const model = resource.data
  const status = model && saleStateOf(model)
  const onTest = (result: TestResult) => {
    setTest(result)
    resource.refresh()
  }
  const canTest = model !== undefined && model.callable && model.surface !== "video"
  return (
    <Page
      title={id}
      lead={
        status && (
          <>
            <Badge tone={status.tone}>{status.text}</Badge> {model.loss && <Badge tone="bad">sold below cost</Badge>}
          </>
        )
      }
      actions={canTest && <TestButton model={id} onDone={onTest} />}
    >
      <Loaded resource={resource}>
        {(record) => (
          <>
            <Overview model={record} />
            {test && <TestSection result={test} />}
            <Section title="Routes">
              <RouteTable routes={record.routes} onDone={resource.refresh} onTest={canTest ? onTest : undefined} />
            </Section>
            <Section title="Prices and costs">
              <Margins routes={record.routes} />
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  )
}

const priceColumns: ReadonlyArray<Column<PricedModel["prices"][number]>> = [
  { title: "Unit", kind: "text", value: ({ unit }) => formatUnit(unit) },
  { title: "Price", kind: "usd", value: ({ price_usd }) => price_usd }
]

/** One model with a first request, for members. */
export const OwnModel = ({ id }: { readonly id: string }) => {
  const resource = useResource<PricedModel>(`/models/${encodeURIComponent(id)}`)
  return (
    <Page title={id} actions={<a href={link(["playground"], { model: id })}>Open in playground</a>}>
      <Loaded resource={resource}>
        {(model) => (
          <>
            <Facts>
              <Fact name="Endpoint type">{model.surface}</Fact>
              <Fact name="Context">{contextText(model)}</Fact>
              <Fact name="Capabilities">{model.capabilities.join(", ") || null}</Fact>
            </Facts>
            <Section title="Prices">
              <Table label="Prices" rows={model.prices} rowKey={({ unit }) => unit} columns={priceColumns} />
            </Section>
            <Section title="Your first request">
              <Snippets model={id} surface={model.surface} />
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  )
}
