/** Signing in. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useEffect, useState } from "react"
import { ApiError } from "../api/Client.ts"
import { isCancelled, signInWithPasskey, supportsPasskeys } from "../api/Passkeys.ts"
import { beginSignOn, type SignOnProblem } from "../api/SingleSignOn.ts"
import { changeUser, signIn } from "../api/Session.ts"
import { Button } from "../components/Button.tsx"
import { TextField } from "../components/Field.tsx"
import { Problem } from "../components/Problem.tsx"
import { texts, useText } from "../text/Language.tsx"
import mark from "../mark.svg"
import css from "./SignIn.module.css"

const words = texts(
  {
    title: "Sign in",
    email: "E-mail",
    password: "Password",
    wrong: "The e-mail address or the password is wrong.",
    often: "Too many attempts. Please wait fifteen minutes and try again.",
    signOn: "Continue with single sign-on",
    passkey: "Continue with a passkey",
    noPasskey: "The passkey was not used: it was cancelled, or took too long.",
    wrongPasskey: "This passkey is not known here any more. Sign in with your password.",
    noSignOn: "There is no single sign-on for this address. Sign in with your password.",
    retry: "The sign-in took too long or was begun in another window. Please try again.",
    denied: "Your organisation did not let you in. Ask whoever runs its sign-in.",
    provider:
      "Your organisation’s sign-in did not answer as it should. Please try again, or tell whoever runs it.",
    unverified: "Your organisation has not verified your e-mail address, so you cannot sign in with it yet.",
    account: "You have no account here. Ask an admin of your team to add you.",
    role: "Your organisation’s groups give you no access here. Ask whoever runs them.",
    first: "On a first start the address and the password are printed in the terminal."
  },
  {
    title: "Anmelden",
    email: "E-Mail",
    password: "Passwort",
    wrong: "Die E-Mail-Adresse oder das Passwort ist falsch.",
    often: "Zu viele Versuche. Bitte eine Viertelstunde warten und dann noch einmal versuchen.",
    signOn: "Weiter mit Single Sign-on",
    passkey: "Weiter mit einem Passkey",
    noPasskey: "Der Passkey wurde nicht benutzt: abgebrochen oder zu lange gewartet.",
    wrongPasskey: "Dieser Passkey ist hier nicht mehr bekannt. Bitte mit dem Passwort anmelden.",
    noSignOn: "Für diese Adresse gibt es kein Single Sign-on. Bitte mit dem Passwort anmelden.",
    retry:
      "Die Anmeldung hat zu lange gedauert oder in einem anderen Fenster begonnen. Bitte noch einmal versuchen.",
    denied: "Ihre Organisation hat Sie nicht eingelassen. Bitte dort nachfragen.",
    provider:
      "Die Anmeldung Ihrer Organisation hat nicht richtig geantwortet. Bitte noch einmal versuchen oder dort Bescheid geben.",
    unverified:
      "Ihre Organisation hat Ihre E-Mail-Adresse nicht bestätigt, deshalb geht die Anmeldung noch nicht.",
    account: "Sie haben hier kein Konto. Bitte einen Admin Ihres Teams, Sie aufzunehmen.",
    role: "Die Gruppen Ihrer Organisation geben Ihnen hier keinen Zugang. Bitte dort nachfragen.",
    first: "Beim ersten Start stehen Adresse und Passwort im Terminal."
  }
)

const isStatus = (problem: unknown, status: number) =>
  problem instanceof ApiError && problem.status === status

const problemKeys: Readonly<
  Record<SignOnProblem, "retry" | "denied" | "provider" | "unverified" | "account" | "role">
> = {
  retry: "retry",
  denied: "denied",
  provider: "provider",
  email: "unverified",
  account: "account",
  role: "role"
}
const isProblem = (text: string | null): text is SignOnProblem =>
  text !== null && Object.hasOwn(problemKeys, text)

/** The problem that the provider's redirect reports in the address of this page. */
const readProblem = () => new URLSearchParams(location.search).get("sso")

export const SignIn = () => {
  const t = useText(words)
  const queries = useQueryClient()
  const [email, setEmail] = useState("")
  const [password, setPassword] = useState("")
  const byPassword = useMutation({
    mutationFn: () => signIn(email, password),
    onSuccess: ({ user }) => changeUser(queries, user)
  })
  const [returnedProblem] = useState(readProblem)
  const signOn = useMutation({
    mutationFn: () => beginSignOn(email),
    onMutate: () => {
      byPassword.reset()
      byPasskey.reset()
    },
    onSuccess: ({ url }) => location.assign(url)
  })
  const { reset: resetSignOn } = signOn
  useEffect(() => {
    // The back button restores this page from the browser's cache, with the button still busy.
    const onPageShow = ({ persisted }: PageTransitionEvent) => {
      if (persisted) resetSignOn()
    }
    window.addEventListener("pageshow", onPageShow)
    return () => window.removeEventListener("pageshow", onPageShow)
  }, [resetSignOn])
  const byPasskey = useMutation({
    mutationFn: signInWithPasskey,
    onMutate: () => {
      byPassword.reset()
      signOn.reset()
    },
    onSuccess: ({ user }) => changeUser(queries, user)
  })
  useEffect(() => {
    document.title = `${t.title} · Spoke`
  }, [t.title])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    signOn.reset()
    byPasskey.reset()
    byPassword.mutate()
  }
  const isUntried = byPassword.isIdle && signOn.isIdle && byPasskey.isIdle
  return (
    <main className={css["place"]}>
      <form className={css["form"]} onSubmit={submit}>
        <img src={mark} alt="" width={40} height={40} />
        <h1>{t.title}</h1>
        {isUntried && isProblem(returnedProblem) ? (
          <p role="alert" className={css["hint"]}>
            {t[problemKeys[returnedProblem]]}
          </p>
        ) : null}
        {signOn.error === null ? null : (
          <Problem problem={signOn.error} sentence={isStatus(signOn.error, 404) ? t.noSignOn : undefined} />
        )}
        {byPasskey.error === null ? null : (
          <Problem
            problem={byPasskey.error}
            sentence={
              isCancelled(byPasskey.error)
                ? t.noPasskey
                : isStatus(byPasskey.error, 401)
                  ? t.wrongPasskey
                  : isStatus(byPasskey.error, 429)
                    ? t.often
                    : undefined
            }
          />
        )}
        {byPassword.error === null ? null : (
          <Problem
            problem={byPassword.error}
            sentence={
              isStatus(byPassword.error, 401)
                ? t.wrong
                : isStatus(byPassword.error, 429)
                  ? t.often
                  : undefined
            }
          />
        )}
        <TextField
          label={t.email}
          type="email"
          name="email"
          autoComplete="username"
          required
          autoFocus
          value={email}
          onChange={setEmail}
        />
        <TextField
          label={t.password}
          type="password"
          name="password"
          autoComplete="current-password"
          required
          value={password}
          onChange={setPassword}
        />
        <Button kind="primary" type="submit" busy={byPassword.isPending}>
          {t.title}
        </Button>
        <Button
          busy={signOn.isPending || signOn.isSuccess}
          onClick={({ currentTarget }) => {
            // An address that is missing or no address is reported below its field, which gets the focus.
            const field = currentTarget.form?.elements.namedItem("email")
            if (field instanceof HTMLInputElement && field.checkValidity()) signOn.mutate()
          }}
        >
          {t.signOn}
        </Button>
        {supportsPasskeys() ? (
          <Button busy={byPasskey.isPending} onClick={() => byPasskey.mutate()}>
            {t.passkey}
          </Button>
        ) : null}
        <p className={css["hint"]}>{t.first}</p>
      </form>
    </main>
  )
}
