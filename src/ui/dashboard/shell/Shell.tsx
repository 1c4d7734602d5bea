/** The frame of every page: brand, navigation and account. They are beside the page, and above it on phones. */
import { useQuery } from "@tanstack/react-query"
import { LifeBuoy, Menu, X } from "lucide-react"
import { type ReactNode, useEffect, useState } from "react"
import { Link, useLocation } from "wouter"
import { unreadCount } from "../api/Inbox.ts"
import type { User } from "../api/Session.ts"
import { Button } from "../components/Button.tsx"
import mark from "../mark.svg"
import { texts, useText } from "../text/Language.tsx"
import { useNotifications } from "../window/notifications.ts"
import { setUnreadInTitle } from "../window/windowTitle.ts"
import { useShortcuts } from "../window/useShortcuts.ts"
import { Account } from "./Account.tsx"
import { Navigation } from "./Navigation.tsx"
import css from "./Shell.module.css"

const words = texts(
  {
    skip: "Skip to content",
    home: "Spoke: home",
    documentation: "Documentation",
    menu: "Menu",
    waiting: (count: number) =>
      count === 1 ? "A conversation waits for you." : `${count} conversations wait for you.`
  },
  {
    skip: "Zum Inhalt springen",
    home: "Spoke: Startseite",
    documentation: "Dokumentation",
    menu: "Menü",
    waiting: (count: number) =>
      count === 1 ? "Ein Gespräch wartet auf Sie." : `${count} Gespräche warten auf Sie.`
  }
)

export const Shell = ({ user, children }: { readonly user: User; readonly children: ReactNode }) => {
  const t = useText(words)
  const [location, navigate] = useLocation()
  useShortcuts({ "g i": () => navigate("/conversations") })
  const { data: loadedCount } = useQuery(unreadCount)
  const unread = loadedCount ?? 0
  useNotifications(loadedCount, t.waiting)
  useEffect(() => setUnreadInTitle(unread), [unread])
  const [isMenuOpen, setMenuOpen] = useState(false)
  // Closes the menu of phones after navigation.
  useEffect(() => setMenuOpen(false), [location])
  return (
    <div className={css["shell"]}>
      <a className={css["skip"]} href="#content">
        {t.skip}
      </a>
      <aside className={css["side"]}>
        <div className={css["top"]}>
          <Link href="/" className={css["brand"] ?? ""} aria-label={t.home}>
            <img src={mark} alt="" width={24} height={24} />
            Spoke
          </Link>
          <span className={css["menu"]}>
            <Button
              kind="quiet"
              aria-expanded={isMenuOpen}
              aria-controls="menu"
              onClick={() => setMenuOpen(!isMenuOpen)}
            >
              {isMenuOpen ? <X aria-hidden size={18} /> : <Menu aria-hidden size={18} />}
              {t.menu}
            </Button>
          </span>
        </div>
        <div id="menu" className={`${css["fold"]} ${isMenuOpen ? css["unfolded"] : ""}`}>
          <Navigation user={user} unread={unread} />
          <div className={css["foot"]}>
            <a className={css["link"]} href="/docs/guide">
              <LifeBuoy aria-hidden size={16} strokeWidth={1.75} />
              {t.documentation}
            </a>
            <Account user={user} />
          </div>
        </div>
      </aside>
      {children}
    </div>
  )
}
