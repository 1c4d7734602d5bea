/** The dashboard: the sign-in without a session, else the page of the address. */
import { MutationCache, QueryCache, QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query"
import { lazy, Suspense, useEffect } from "react"
import { Redirect, Route, Router, Switch, useLocation } from "wouter"
import { Toasts } from "./components/feedback/Toast.tsx"
import { ApiError } from "./api/Client.ts"
import { start } from "./api/Widgets.ts"
import { atLeast, followOtherTabs, session, type User } from "./api/Session.ts"
import { Boundary } from "./components/Boundary.tsx"
import { OneTimeSecrets } from "./components/OneTimeSecret.tsx"
import { Loaded, PageSkeleton } from "./components/Page.tsx"
import { NotFound } from "./pages/NotFound.tsx"
import { pages, preload } from "./pages.ts"
import { Shell } from "./shell/Shell.tsx"
import { LanguageProvider } from "./text/Language.tsx"
import { whenIdle } from "./window/whenIdle.ts"

/** After the session has ended, shows the sign-in page instead of an error in each part of the page. */
const onError = (problem: unknown) => {
  if (problem instanceof ApiError && problem.status === 401) {
    void queries.invalidateQueries({ queryKey: session.queryKey })
  }
}

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    // Without a connection, requests fail and show it. By default they would wait for it, without a message.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      refetchOnReconnect: true,
      // Refusals are final. Only failures of the network or the server are retried.
      retry: (failures, problem) => failures < 2 && !(problem instanceof ApiError && problem.status < 500),
      staleTime: 5_000
    }
  }
})

followOtherTabs(queries)

const AgentPage = lazy(pages.agentPage)
const Agents = lazy(pages.agents)
const Tokens = lazy(pages.tokens)
const Audit = lazy(pages.audit)
const Inbox = lazy(pages.inbox)
const Insights = lazy(pages.insights)
const People = lazy(pages.people)
const Retention = lazy(pages.retention)
const Sessions = lazy(pages.sessions)
const SingleSignOn = lazy(pages.singleSignOn)
const Document = lazy(pages.document)
const Source = lazy(pages.source)
const Sources = lazy(pages.sources)
const Start = lazy(pages.start)
const Team = lazy(pages.team)
const Webhooks = lazy(pages.webhooks)
const Usage = lazy(pages.usage)
const SignIn = lazy(() => pages.signIn().then((module) => ({ default: module.SignIn })))
const Welcome = lazy(() => pages.welcome().then((module) => ({ default: module.Welcome })))

/** Redirects to the guided start until it is finished or dismissed. */
const Home = () => {
  const query = useQuery(start(null))
  return (
    <Loaded query={query.error === null ? query : { ...query, data: undefined }}>
      {({ dismissed, finished }) => <Redirect to={finished || dismissed ? "/agents" : "/start"} replace />}
    </Loaded>
  )
}

const Pages = ({ user }: { readonly user: User }) => {
  const [location] = useLocation()
  return (
    <OneTimeSecrets>
      <Shell user={user}>
        <Boundary path={location}>
          <Suspense fallback={<PageSkeleton />}>
            <Switch>
              <Route path="/start">
                {atLeast(user.role, "admin") ? <Start user={user} /> : <NotFound />}
              </Route>
              <Route path="/agents">
                <Agents user={user} />
              </Route>
              <Route path="/agents/:id/:tab?">
                {({ id, tab }) => <AgentPage id={id} tab={tab} user={user} />}
              </Route>
              <Route path="/sources">
                <Sources user={user} />
              </Route>
              <Route path="/sources/:id/documents/:document">
                {({ document, id }) => <Document key={document} sourceId={id} id={document} user={user} />}
              </Route>
              <Route path="/sources/:id">{({ id }) => <Source id={id} user={user} />}</Route>
              <Route path="/conversations/:id?">{({ id }) => <Inbox id={id ?? null} user={user} />}</Route>
              <Route path="/insights">
                <Insights user={user} />
              </Route>
              <Route path="/usage">
                <Usage user={user} />
              </Route>
              <Route path="/team">
                <Team user={user} />
              </Route>
              <Route path="/team/:id/sessions">
                {({ id }) => (atLeast(user.role, "owner") ? <Sessions userId={id} /> : <NotFound />)}
              </Route>
              <Route path="/sessions">
                <Sessions userId={null} />
              </Route>
              <Route path="/single-sign-on">
                {atLeast(user.role, "owner") ? <SingleSignOn /> : <NotFound />}
              </Route>
              <Route path="/people">
                <People />
              </Route>
              <Route path="/webhooks">
                <Webhooks />
              </Route>
              <Route path="/tokens">
                <Tokens />
              </Route>
              <Route path="/retention">
                <Retention user={user} />
              </Route>
              <Route path="/audit">
                <Audit />
              </Route>
              <Route path="/">
                {atLeast(user.role, "admin") ? <Home /> : <Redirect to="/agents" replace />}
              </Route>
              <Route>
                <NotFound />
              </Route>
            </Switch>
          </Suspense>
        </Boundary>
        <Toasts />
      </Shell>
    </OneTimeSecrets>
  )
}

const Root = () => {
  const [location] = useLocation()
  const query = useQuery(session)
  const isSignedOut = query.data === null
  // Loads the page that follows the sign-in.
  useEffect(() => (isSignedOut ? whenIdle(() => preload(location)) : undefined), [isSignedOut, location])
  if (location === "/welcome") return <Welcome />
  return (
    <Loaded query={query}>
      {(user) => (user === null ? <SignIn /> : <Pages key={user.id} user={user} />)}
    </Loaded>
  )
}

export const App = () => (
  <LanguageProvider>
    <QueryClientProvider client={queries}>
      <Router base="/app">
        <Suspense>
          <Root />
        </Suspense>
      </Router>
    </QueryClientProvider>
  </LanguageProvider>
)
