import { render } from "preact"
import { useRoute } from "./BrowserState.ts"
import { Layout, SignIn } from "./layout/Layout.tsx"
import { Empty, Toasts } from "./parts/Feedback.tsx"
import { Page } from "./parts/Page.tsx"
import { resumeSession, useSessionState } from "./SignedIn.ts"
import { useViews } from "./views.ts"

const CurrentView = () => {
  const [viewPath = "", id] = useRoute().path
  const view = useViews().find(({ path }) => path === viewPath)
  const Detail = view?.detail
  if (view !== undefined && id === undefined) return <view.view />
  if (Detail !== undefined && id !== undefined) return <Detail key={id} id={id} />
  return (
    <Page title="Page not found">
      <Empty>This page does not exist.</Empty>
    </Page>
  )
}

const App = () => {
  const state = useSessionState()
  return (
    <>
      {state.status === "loading" && (
        <p class="splash" role="status">
          Loading…
        </p>
      )}
      {state.status === "signed out" && <SignIn error={state.error} />}
      {state.status === "signed in" && (
        <Layout session={state.session}>
          <CurrentView />
        </Layout>
      )}
      <Toasts />
    </>
  )
}

void resumeSession()
render(<App />, document.body)
