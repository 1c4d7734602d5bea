/** The menu of the signed-in user: settings of this browser, the user's sessions, and signing out. */
import { useQueryClient } from "@tanstack/react-query"
import { ChevronsUpDown, LogOut, MonitorSmartphone } from "lucide-react"
import { useState } from "react"
import { Link } from "wouter"
import { changeUser, signOut, type User } from "../api/Session.ts"
import { Avatar } from "../components/Avatar.tsx"
import { Button } from "../components/Button.tsx"
import { ConfirmDialog } from "../components/Dialog.tsx"
import { toast } from "../components/feedback/Toast.tsx"
import { Select } from "../components/Field.tsx"
import { Popover } from "../components/Popover.tsx"
import { dropDrafts, useKeptDrafts } from "../forms/keptDrafts.ts"
import { useScheme } from "../Scheme.ts"
import { type Language, languages, texts, useLanguage, useText } from "../text/Language.tsx"
import { useReason } from "../text/useReason.ts"
import css from "./Shell.module.css"

const words = texts(
  {
    account: "Your account",
    sessions: "Where you are signed in",
    language: "Language",
    scheme: "Appearance",
    system: "System",
    light: "Light",
    dark: "Dark",
    signOut: "Sign out",
    unsaved: (titles: string) => `This has not been saved, and is lost when you sign out: ${titles}.`
  },
  {
    account: "Ihr Konto",
    sessions: "Wo Sie angemeldet sind",
    language: "Sprache",
    scheme: "Darstellung",
    system: "System",
    light: "Hell",
    dark: "Dunkel",
    signOut: "Abmelden",
    unsaved: (titles: string) => `Das ist nicht gespeichert und geht beim Abmelden verloren: ${titles}.`
  }
)

const isLanguage = (key: string): key is Language => Object.hasOwn(languages, key)
const languageOptions = Object.entries(languages).flatMap(([key, name]) =>
  isLanguage(key) ? [[key, name] as const] : []
)

const icon = { "aria-hidden": true, size: 16, strokeWidth: 1.75 } as const

export const Account = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const { language, choose } = useLanguage()
  const [scheme, setScheme] = useScheme()
  const queries = useQueryClient()
  const reason = useReason()
  const kept = useKeptDrafts(user.id)
  const [isConfirming, setConfirming] = useState(false)
  const signOutAndForget = () =>
    signOut().then(() => {
      // The next user of this browser must not read drafts of this one.
      dropDrafts(user.id)
      changeUser(queries, null)
    })
  return (
    <>
      <Popover
        role="dialog"
        label={t.account}
        above
        className={css["accountBox"]}
        button={(buttonProps) => (
          <button type="button" {...buttonProps} className={css["account"]}>
            <Avatar name={user.email} />
            <span className="visually-hidden">{t.account}</span>
            <span className={css["user"]}>{user.email}</span>
            <ChevronsUpDown {...icon} size={14} />
          </button>
        )}
      >
        {(close) => (
          <>
            <p className={css["user"]} title={user.email}>
              {user.email}
            </p>
            <Select label={t.language} options={languageOptions} value={language} onChange={choose} />
            <Select
              label={t.scheme}
              options={[
                ["system", t.system],
                ["light", t.light],
                ["dark", t.dark]
              ]}
              value={scheme}
              onChange={setScheme}
            />
            <Link className={css["link"] ?? ""} href="/sessions" onClick={close}>
              <MonitorSmartphone {...icon} />
              {t.sessions}
            </Link>
            <Button
              kind="quiet"
              onClick={() => {
                close()
                if (kept.length === 0)
                  signOutAndForget().catch((problem: unknown) => toast(reason(problem).sentence))
                else setConfirming(true)
              }}
            >
              <LogOut {...icon} />
              {t.signOut}
            </Button>
          </>
        )}
      </Popover>
      <ConfirmDialog
        title={t.signOut}
        question={t.unsaved(kept.map(({ title }) => title).join(", "))}
        action={t.signOut}
        onConfirm={signOutAndForget}
        isOpen={isConfirming}
        onOpenChange={setConfirming}
      />
    </>
  )
}
