/** The error boundary of pages. It replaces a page that failed to load or crashed by an error with a reload button. */
import { Component, type ReactNode } from "react"
import { texts, useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { Page } from "./Page.tsx"

const words = texts(
  {
    title: "This page did not load",
    lead: "The connection may have broken, or the server has been renewed since this window was opened.",
    reload: "Load again"
  },
  {
    title: "Diese Seite ließ sich nicht laden",
    lead: "Die Verbindung ist vielleicht abgerissen, oder der Server wurde erneuert, seit dieses Fenster offen ist.",
    reload: "Neu laden"
  }
)

/** An error and a button that reloads the page, because some browsers do not load a failed file again. */
export const LoadErrorMessage = () => {
  const t = useText(words)
  return (
    <>
      <p role="alert">{t.lead}</p>
      <div>
        <Button kind="primary" onClick={() => location.reload()}>
          {t.reload}
        </Button>
      </div>
    </>
  )
}

const PageLoadError = () => (
  <Page title={useText(words).title}>
    <LoadErrorMessage />
  </Page>
)

interface Props {
  /** The path of the page. Another path resets the error. */
  readonly path: string
  readonly children: ReactNode
}

interface State {
  /** The path of the page that failed; null without an error, and empty until the path is known. */
  readonly failedPath: string | null
}

export class Boundary extends Component<Props, State> {
  override state: State = { failedPath: null }

  static getDerivedStateFromError(): Partial<State> {
    return { failedPath: "" }
  }

  static getDerivedStateFromProps({ path }: Props, { failedPath }: State): Partial<State> | null {
    if (failedPath === "") return { failedPath: path }
    return failedPath === null || failedPath === path ? null : { failedPath: null }
  }

  override render(): ReactNode {
    return this.state.failedPath === null ? this.props.children : <PageLoadError />
  }
}
