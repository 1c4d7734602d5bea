import { Link } from "wouter"
import { Page } from "../components/Page.tsx"
import { texts, useText } from "../text/Language.tsx"

const words = texts(
  {
    page: "There is nothing here",
    pageBack: "To the agents",
    agent: "There is no such agent",
    agentBack: "All agents",
    source: "There is no such source",
    sourceBack: "All sources",
    document: "There is no such document",
    documentBack: "Its source",
    member: "There is no such member",
    memberBack: "The team",
    lead: "The address is wrong, or what it named has been deleted."
  },
  {
    page: "Hier ist nichts",
    pageBack: "Zu den Agenten",
    agent: "Diesen Agenten gibt es nicht",
    agentBack: "Alle Agenten",
    source: "Diese Quelle gibt es nicht",
    sourceBack: "Alle Quellen",
    document: "Dieses Dokument gibt es nicht",
    documentBack: "Seine Quelle",
    member: "Dieses Mitglied gibt es nicht",
    memberBack: "Das Team",
    lead: "Die Adresse stimmt nicht, oder es wurde gelöscht, was sie benannte."
  }
)

export interface NotFoundProps {
  /** What the address names. */
  readonly what?: "page" | "agent" | "source" | "document" | "member"
  /** The page above it. */
  readonly back?: string
}

export const NotFound = ({ back = "/agents", what = "page" }: NotFoundProps) => {
  const t = useText(words)
  return (
    <Page title={t[what]} lead={t.lead}>
      <p>
        <Link href={back}>{t[`${what}Back`]}</Link>
      </p>
    </Page>
  )
}
