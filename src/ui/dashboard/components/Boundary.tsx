/** The error boundary: shown in place of a page that failed to load or crashed, with a way to continue. */
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

/** Why code was not loaded, and a button that loads the page again: some browsers do not try a failed file again. */
export const NotLoaded = () => {
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

const Broken = () => (
  <Page title={useText(words).title}>
    <NotLoaded />
  </Page>
)

interface Props {
  /** The path on which the error is shown: another path resets it. */
  readonly place: string
  readonly children: ReactNode
}

interface State {
  /** The path that failed; null without an error. */
  readonly broken: string | null
}

export class Boundary extends Component<Props, State> {
  override state: State = { broken: null }

  static getDerivedStateFromError(): Partial<State> {
    return { broken: "" }
  }

  static getDerivedStateFromProps({ place }: Props, { broken }: State): Partial<State> | null {
    if (broken === "") return { broken: place }
    return broken === null || broken === place ? null : { broken: null }
  }

  override render(): ReactNode {
    return this.state.broken === null ? this.props.children : <Broken />
  }
}
