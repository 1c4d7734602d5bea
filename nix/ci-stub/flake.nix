# A stand-in for nixpkgs with only what this repository's Nix files touch, so that they can be evaluated, and the package
# really be built, where nixpkgs cannot be had. Its stdenv runs the real phases with the host's bash and node. It does not
# prove that nixpkgs has these names. Used by .ci/nix alone.
{
  outputs =
    { self }:
    let
      b = builtins;

      lib = rec {
        inherit (b) mapAttrs;
        importJSON = path: b.fromJSON (b.readFile path);
        genAttrs =
          names: f:
          b.listToAttrs (
            map (name: {
              inherit name;
              value = f name;
            }) names
          );
        optional = condition: x: if condition then [ x ] else [ ];
        optionals = condition: xs: if condition then xs else [ ];
        optionalAttrs = condition: xs: if condition then xs else { };
        last = xs: b.elemAt xs (b.length xs - 1);
        range = from: to: b.genList (n: from + n) (if to < from then 0 else to - from + 1);
        escapeRegex = b.replaceStrings [ "." ] [ "\\." ];
        splitString = separator: s: b.filter b.isString (b.split (escapeRegex separator) s);
        hasPrefix = prefix: s: b.substring 0 (b.stringLength prefix) s == prefix;
        hasInfix = infix: s: b.length (b.split (escapeRegex infix) s) > 1;
        removePrefix =
          prefix: s: if hasPrefix prefix s then b.substring (b.stringLength prefix) (-1) s else s;
        mapAttrsToList = f: set: map (name: f name set.${name}) (b.attrNames set);
        concatStringsSep = b.concatStringsSep;
        strings.sanitizeDerivationName = b.replaceStrings [ "@" "/" ] [ "-" "-" ];
        getExe = package: "${package}/bin/${package.meta.mainProgram}";
        licenses.mit = "MIT";
        platforms.linux = systems;
        fetchers.proxyImpureEnvVars = [
          "http_proxy"
          "https_proxy"
          "no_proxy"
        ];
        callPackageWith =
          scope: f: args:
          let
            fn = if b.isFunction f then f else import f;
          in
          fn (b.intersectAttrs (b.functionArgs fn) scope // args);

        fileset = {
          unions = files: files;
          toSource =
            { root, fileset }:
            b.path {
              path = root;
              name = "source";
              filter =
                path: _:
                b.any (
                  wanted:
                  path == toString wanted
                  || hasPrefix "${toString wanted}/" path
                  || hasPrefix "${path}/" (toString wanted)
                ) fileset;
            };
        };

        # Modules: options are their defaults, definitions are merged in order, types are not checked.
        mkOption = option: option // { _type = "option"; };
        mkEnableOption = _: mkOption { default = false; };
        mkIf = condition: content: {
          _type = "if";
          inherit condition content;
        };
        mkMerge = contents: {
          _type = "merge";
          inherit contents;
        };
        mkDefault = x: x;
        literalExpression = x: x;
        types =
          genAttrs [
            "str"
            "port"
            "bool"
            "path"
            "package"
            "anything"
          ] (x: x)
          // genAttrs [
            "nullOr"
            "attrsOf"
          ] (_: x: x)
          // {
            ints.unsigned = "unsigned";
          };
        merge =
          x: y:
          if b.isAttrs x && b.isAttrs y && !(x ? outPath) && !(y ? outPath) then
            x // mapAttrs (name: value: if x ? ${name} then merge x.${name} value else value) y
          else if b.isList x && b.isList y then
            x ++ y
          else
            y;
        discharge =
          x:
          if x._type or null == "if" then
            (if x.condition then discharge x.content else { })
          else if x._type or null == "merge" then
            b.foldl' (all: one: merge all (discharge one)) { } x.contents
          else if b.isAttrs x && !(x ? outPath) then
            mapAttrs (_: discharge) x
          else
            x;
        defaults = option: if option ? _type then option.default or null else mapAttrs (_: defaults) option;

        # Two passes: the defaults and what the user set, then what the modules make of it.
        nixosSystem =
          { modules }:
          let
            given = b.foldl' merge { } (b.filter b.isAttrs modules);
            pkgs = pkgsFor given.nixpkgs.hostPlatform;
            set = merge (outside pkgs) given;
            run = config: map (module: module { inherit config lib pkgs; }) (b.filter b.isFunction modules);
            options = map (module: defaults module.options) (run (throw "config is asked for by options"));
            first = merge (b.foldl' merge { } options) set;
            all = b.foldl' (config: module: merge config (discharge module.config)) first (run first);
          in
          {
            config = all // {
              systemd = all.systemd // {
                units = unitsOf all.systemd;
              };
            };
          };
        # Of modules that are not here: what ours reads of them.
        outside = pkgs: {
          services.redis.servers.spoke.unixSocket = "/run/redis-spoke/redis.sock";
          services.postgresql.package = pkgs.postgresql_17;
        };
        unitsOf =
          systemd:
          b.listToAttrs (
            mapAttrsToList (name: unit: {
              name = "${name}.service";
              value.text = unitText unit;
            }) systemd.services
            ++ mapAttrsToList (name: unit: {
              name = "${name}.target";
              value.text = unitText unit;
            }) systemd.targets
          );
        unitText =
          unit:
          let
            lines =
              set:
              concatStringsSep "\n" (
                b.concatLists (
                  mapAttrsToList (
                    name: value: map (one: "${name}=${shown one}") (if b.isList value then value else [ value ])
                  ) set
                )
              );
            shown =
              value:
              if value == true then
                "true"
              else if value == false then
                "false"
              else
                toString value;
            together =
              name: key: optionalAttrs (unit ? ${key}) { ${name} = concatStringsSep " " unit.${key}; };
          in
          ''
            [Unit]
            ${lines (
              {
                Description = unit.description;
              }
              // together "After" "after"
              // together "Requires" "requires"
              // together "Wants" "wants"
              // together "PartOf" "partOf"
            )}
            ${
              if unit ? serviceConfig then
                ''
                  [Service]
                  ${lines (
                    unit.serviceConfig
                    // {
                      Environment = mapAttrsToList (name: value: b.toJSON "${name}=${value}") (unit.environment or { });
                    }
                  )}
                ''
              else
                ""
            }
            [Install]
            ${lines (together "WantedBy" "wantedBy")}
          '';
      };

      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];

      pkgsFor =
        system:
        let
          # Programs of the machine itself, under the names they have in a package.
          host =
            programs:
            derivation {
              inherit system;
              name = "host-${b.head programs}";
              builder = "/bin/sh";
              args = [
                "-c"
                "/bin/mkdir -p $out/bin; for x in ${b.concatStringsSep " " programs}; do /bin/ln -s $(PATH=/usr/local/bin:/usr/bin:/bin command -v $x) $out/bin/$x; done"
              ];
            }
            // {
              meta.mainProgram = b.head programs;
              withPackages = _: host programs;
            };
          mkDerivation =
            given:
            let
              phases =
                if given ? buildCommand then
                  [ "buildCommand" ]
                else
                  [
                    "configurePhase"
                    "buildPhase"
                    "checkPhase"
                    "installPhase"
                  ];
              built = derivation (
                removeAttrs given [
                  "meta"
                  "passthru"
                  "nativeBuildInputs"
                  "buildInputs"
                  "strictDeps"
                  "doCheck"
                ]
                // {
                  inherit system;
                  name = given.name or "${given.pname}-${given.version}";
                  builder = "/bin/bash";
                  PATH = b.concatStringsSep ":" (
                    map (package: "${package}/bin") (given.nativeBuildInputs or [ ])
                    ++ [
                      "/usr/local/bin"
                      "/usr/bin"
                      "/bin"
                    ]
                  );
                  args = [
                    "-euo"
                    "pipefail"
                    "-c"
                    ''
                      runHook() { :; }
                      patchShebangs() { :; }
                      makeWrapper() {
                        printf '#!/bin/sh\nexec %s %s "$@"\n' "$1" "$4" >"$2"
                        chmod +x "$2"
                      }
                      cd "$TMPDIR"
                      if [ -n "''${src-}" ]; then cp -r --no-preserve=mode "$src" source; cd source; fi
                      ${b.concatStringsSep "\n" (map (phase: ''echo "phase: ${phase}"; eval "${"$"}${phase}"'') phases)}
                    ''
                  ];
                }
              );
            in
            built // { meta = given.meta or { }; } // (given.passthru or { });
          pkgs = {
            inherit lib;
            stdenv = {
              inherit mkDerivation;
              hostPlatform = {
                inherit system;
                isMusl = false;
                node = {
                  platform = "linux";
                  arch = if system == "x86_64-linux" then "x64" else "arm64";
                };
              };
            };
            stdenvNoCC = pkgs.stdenv;
            callPackage = lib.callPackageWith pkgs;
            writeText =
              name: text:
              derivation {
                inherit name system text;
                passAsFile = [ "text" ];
                builder = "/bin/sh";
                args = [
                  "-c"
                  "/bin/cp $textPath $out"
                ];
              };
            writeShellScript =
              name: text:
              derivation {
                inherit name system;
                text = "#!/bin/bash\n${text}";
                passAsFile = [ "text" ];
                builder = "/bin/sh";
                args = [
                  "-c"
                  "/bin/cp $textPath $out; /bin/chmod +x $out"
                ];
              };
            runCommand =
              name: given: buildCommand:
              mkDerivation (given // { inherit name buildCommand; });
            nodejs_22 = host [
              "node"
              "npm"
              "npx"
            ];
            cacert = host [ "true" ];
            makeWrapper = host [ "true" ];
            redis = host [ "redis-server" ];
            postgresql_17 = host [ "psql" ];
            nixfmt-tree = host [ "true" ];
            mkShell =
              { packages }:
              mkDerivation {
                name = "shell";
                buildCommand = "touch $out";
                nativeBuildInputs = packages;
              };
            testers.runNixOSTest =
              test:
              mkDerivation {
                name = "vm-test-${test.name}";
                buildCommand = "echo 'this stand-in has no virtual machines' >&2; exit 1";
              };
          };
        in
        pkgs;
    in
    {
      inherit lib;
      legacyPackages = lib.genAttrs systems pkgsFor;
    };
}
