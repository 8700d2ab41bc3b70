import { render } from "preact"
import { useRoute } from "./CurrentRoute.ts"
import { Layout, SignIn } from "./layout/Layout.tsx"
import { Empty, Toasts } from "./parts/Feedback.tsx"
import { Page } from "./parts/Page.tsx"
import { resumeSession, useSessionState } from "./Session.ts"
import { useViews } from "./views.ts"

const Current = () => {
  const { path } = useRoute()
  const [first = "", id] = path
  const view = useViews().find((one) => one.path === first)
  const Detail = view?.detail
  if (view !== undefined && id === undefined) return <view.view />
  if (Detail !== undefined && id !== undefined) return <Detail key={id} id={id} />
  return (
    <Page title="Not found">
      <Empty>There is no such view.</Empty>
    </Page>
  )
}

const App = () => {
  const state = useSessionState()
  return (
    <>
      {state.is === "loading" && (
        <p class="splash" role="status">
          Loading…
        </p>
      )}
      {state.is === "signed out" && <SignIn error={state.error} />}
      {state.is === "signed in" && (
        <Layout session={state.session}>
          <Current />
        </Layout>
      )}
      <Toasts />
    </>
  )
}

void resumeSession()
render(<App />, document.body)
