import { Link } from "wouter"
import { Page } from "../components/Page.tsx"
import { texts, useText } from "../text/Language.tsx"

const words = texts(
  {
    title: "There is nothing here",
    lead: "The address is wrong, or what it named has been deleted.",
    back: "To the agents"
  },
  {
    title: "Hier ist nichts",
    lead: "Die Adresse stimmt nicht, oder es wurde gelöscht, was sie benannte.",
    back: "Zu den Agenten"
  }
)

export const NotFound = () => {
  const t = useText(words)
  return (
    <Page title={t.title} lead={t.lead}>
      <p>
        <Link href="/agents">{t.back}</Link>
      </p>
    </Page>
  )
}
